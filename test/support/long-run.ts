/** Set by `npm run test:long`, which runs the randomised and crash tests with more rounds. */
const isLong = process.env['LONG_TESTS'] === '1'

/** Returns the number of rounds: `short` in `npm test`, `long` in `npm run test:long`. */
export function times(short: number, long: number): number {
  return isLong ? long : short
}
