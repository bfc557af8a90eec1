/** Whether tests that try many cases by chance try as many as there is time for: `npm run test:long`. */
const isLong = process.env['LONG_TESTS'] === '1'

/** How often something is tried: `short` times in `npm test`, `long` times in the long run. */
export function times(short: number, long: number): number {
  return isLong ? long : short
}
