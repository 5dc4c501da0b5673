/** Fits a weighted sum of features to token counts so that the sum of relative errors is minimal. */
import { sum } from './arithmetic.ts';

/** Returns the fitted estimator. It uses iteratively reweighted least squares, which approximates least absolute errors. */
export function fitLeastRelativeError<T extends { readonly tokens: number }>(
  cases: readonly T[],
  features: readonly ((one: T) => number)[],
): (one: T) => number {
  const rows = cases.map((one) => ({ x: features.map((feature) => feature(one)), y: one.tokens }));
  let weights: readonly number[] = features.map(() => 0);
  const predict = (x: readonly number[]): number => sum(x.map((value, k) => value * weights[k]!));
  for (let pass = 0; pass < 30; pass++) {
    const importance = rows.map(({ x, y }) =>
      pass === 0 ? 1 / (y * y) : 1 / (y * Math.max(Math.abs(predict(x) - y), y / 1_000)),
    );
    const products = (left: (row: (typeof rows)[number]) => number, k: number): number =>
      sum(rows.map((row, at) => importance[at]! * left(row) * row.x[k]!));
    weights = solve(
      features.map((_, j) => [
        ...features.map((__, k) => products((row) => row.x[j]!, k)),
        products((row) => row.y, j),
      ]),
    );
  }
  return (one) => predict(features.map((feature) => feature(one)));
}

/** Solves linear equations by Gauss-Jordan elimination. The last column of the matrix is the right-hand side. */
function solve(matrix: readonly (readonly number[])[]): readonly number[] {
  const rows = matrix.map((row) => [...row]);
  for (const [at, pivot] of rows.entries()) {
    for (const [other, row] of rows.entries()) {
      if (other === at) continue;
      const factor = row[at]! / pivot[at]!;
      for (let k = at; k < row.length; k++) row[k]! -= factor * pivot[k]!;
    }
  }
  return rows.map((row, at) => row.at(-1)! / row[at]!);
}
