import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { imageSizeOf } from './count-media.ts';

const bytes = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));
/** A JSON string literal of the image whose first bytes are given. */
const literal = (image: string, before = '') => bytes(`"${before}${btoa(image)}"`);

const png = '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x05\0\0\0\x02\xd0\x08\x06\0\0\0';
const gif = 'GIF89a\x40\x01\xf0\0\xf7\0\0';
const webp = {
  lossy: 'RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0\x30\x01\0\x9d\x01\x2a\x20\x43\x90\x01',
  lossless: 'RIFF\x24\0\0\0WEBPVP8L\x18\0\0\0\x2f\x8f\xc1\x2b\x10',
  extended: 'RIFF\x24\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\x7f\x07\0\x37\x04\0',
};
const segment = (marker: string, body: string) =>
  `\xff${marker}${String.fromCharCode((body.length + 2) >> 8, (body.length + 2) & 255)}${body}`;
const jpegWith = (...before: readonly string[]) =>
  `\xff\xd8${before.join('')}${segment('\xc2', '\x08\x04\x38\x07\x80\x03\x01\x22\0')}`;

describe('imageSizeOf', () => {
  it.each([
    ['PNG', png, { width: 1280, height: 720 }],
    ['GIF', gif, { width: 320, height: 240 }],
    ['lossy WebP', webp.lossy, { width: 800, height: 400 }],
    ['lossless WebP', webp.lossless, { width: 400, height: 176 }],
    ['extended WebP', webp.extended, { width: 1920, height: 1080 }],
    ['JPEG', jpegWith(segment('\xe0', 'JFIF\0\x01\x02\0\0\0\0\0\0\0')), { width: 1920, height: 1080 }],
    [
      'JPEG after a large preview',
      jpegWith(
        segment('\xe1', 'x'.repeat(60_000)),
        segment('\xe2', 'y'.repeat(65_000)),
        '\xff\xff',
        segment('\xdb', 'z'),
      ),
      { width: 1920, height: 1080 },
    ],
  ])('reads %s', (_, image, size) => {
    expect(imageSizeOf(literal(image))).toEqual(size);
  });

  it('reads data URLs, escaped slashes, line breaks and the URL-safe alphabet', () => {
    const image = `${gif}\xff\xff\xff\xff`;
    const size = { width: 320, height: 240 };
    expect(imageSizeOf(literal(image, 'data:image/gif;base64,'))).toEqual(size);
    expect(imageSizeOf(literal(image, 'data:image\\/gif;base64,'))).toEqual(size);
    expect(imageSizeOf(bytes(`"${btoa(image).replaceAll('/', '\\/')}"`))).toEqual(size);
    expect(imageSizeOf(bytes(`"${btoa(image).replace(/.{4}/g, '$&\\n')}"`))).toEqual(size);
    expect(imageSizeOf(bytes(`"${btoa(jpegWith()).replaceAll('/', '_').replaceAll('+', '-')}"`))).toEqual({
      width: 1920,
      height: 1080,
    });
  });

  it.each([
    ['a URL', bytes('"https://example.org/a.png"')],
    ['a data URL without base64', bytes('"data:image/svg+xml,<svg/>"')],
    ['an unknown format', literal('%PDF-1.7 and so on')],
    ['an image cut short', literal(png.slice(0, 18))],
    ['a JPEG without a frame', literal('\xff\xd8\xff\xda\0\x02\0\0')],
    ['a picture of no width', literal('GIF89a\0\0\xf0\0')],
    ['nothing', bytes('""')],
    ['no bytes', bytes('')],
  ])('has no size for %s', (_, data) => {
    expect(imageSizeOf(data)).toBeUndefined();
  });

  it('never throws, whatever it is given', () => {
    const heads = fc.constantFrom('', png, gif, webp.lossy, webp.lossless, '\xff\xd8', '\xff\xd8\xff');
    fc.assert(
      fc.property(heads, fc.uint8Array({ maxLength: 60 }), (head, tail) => {
        const size = imageSizeOf(literal(head + String.fromCharCode(...tail)));
        expect(size === undefined || (size.width > 0 && size.height > 0)).toBe(true);
        expect(() => imageSizeOf(tail)).not.toThrow();
      }),
    );
  });
});
