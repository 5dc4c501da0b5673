/** Represents JSON as a tree whose objects may have a key twice, and writes it in any valid spelling. */
import type { Random } from './random.ts';

export type Tree =
  | { readonly kind: 'object'; readonly members: Member[] }
  | { readonly kind: 'array'; readonly items: Tree[] }
  /** A scalar as JSON text. */
  | { readonly kind: 'text'; readonly text: string };

export type Member = { key: string; value: Tree };

export function treeOf(value: unknown): Tree {
  if (Array.isArray(value)) return { kind: 'array', items: value.map(treeOf) };
  if (typeof value !== 'object' || value === null) return { kind: 'text', text: JSON.stringify(value) };
  return {
    kind: 'object',
    members: Object.entries(value).map(([key, held]) => ({ key, value: treeOf(held) })),
  };
}

export function copyOf(tree: Tree): Tree {
  if (tree.kind === 'array') return { kind: 'array', items: tree.items.map(copyOf) };
  if (tree.kind === 'text') return { ...tree };
  return { kind: 'object', members: tree.members.map(({ key, value }) => ({ key, value: copyOf(value) })) };
}

/** Writes a tree; `oddness` 0 is like `JSON.stringify`, 1 has odd white space and escapes wherever they are allowed. */
export function spell(tree: Tree, random: Random, oddness: number): string {
  const space = () => (oddness > 0 && random.chance(oddness) ? random.pick([' ', '\n', '\t', '\r\n ']) : '');
  const write = (node: Tree): string => {
    switch (node.kind) {
      case 'text':
        return `${space()}${node.text}${space()}`;
      case 'array':
        return `${space()}[${node.items.map(write).join(',')}${space()}]`;
      case 'object':
        return `${space()}{${node.members.map(({ key, value }) => `${space()}${keyText(key)}${space()}:${write(value)}`).join(',')}${space()}}`;
    }
  };
  const keyText = (key: string): string => {
    const plain = JSON.stringify(key);
    if (key === '' || oddness === 0 || !random.chance(oddness / 4)) return plain;
    const code = key.charCodeAt(0).toString(16).padStart(4, '0');
    return `"\\u${code}${JSON.stringify(key.slice(1)).slice(1)}`;
  };
  return write(tree);
}

export function memberOf(tree: Tree | undefined, key: string): Tree | undefined {
  return tree?.kind === 'object' ? tree.members.findLast((member) => member.key === key)?.value : undefined;
}

/** Returns every object and array in a tree, the tree itself first. */
export function containersIn(tree: Tree): readonly Tree[] {
  if (tree.kind === 'text') return [];
  const inside = tree.kind === 'array' ? tree.items : tree.members.map(({ value }) => value);
  return [tree, ...inside.flatMap(containersIn)];
}
