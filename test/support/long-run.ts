/** Set by `npm run test:long`, which runs tests with more rounds, and with all combinations of their parameters. */
export const isLong = process.env['LONG_TESTS'] === '1'

/** Returns the number of rounds: `short` in `npm test`, `long` in `npm run test:long`. */
export function times(short: number, long: number): number {
  return isLong ? long : short
}

/** Returns the variant of this name, with which tests run in `npm test`. `npm run test:long` runs them with all variants. */
export function oneOf<Variant extends { readonly name: string }>(
  variants: readonly Variant[],
  name: Variant['name'],
): readonly Variant[] {
  return isLong ? variants : variants.filter((variant) => variant.name === name)
}

/**
 * Returns the cases that one of several test groups runs: all of them in `npm run test:long`. In `npm test` the groups share them,
 * so that each case runs in one group.
 */
export function shareOf<Case>(
  cases: readonly Case[],
  { group, groups }: { group: number; groups: number },
): Case[] {
  return isLong ? [...cases] : cases.filter((_, index) => index % groups === group % groups)
}
