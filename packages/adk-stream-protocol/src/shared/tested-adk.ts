/** The version of ADK with which this package is tested. */
export const TESTED_ADK = '2.0.0'

/** Returns a sentence about a version of ADK that this package is not tested with. */
export function describeUntestedAdk(version: string): string | undefined {
  if (version === TESTED_ADK) return undefined
  return `@google/adk ${version} is not tested with this version of adk-stream-protocol; ${TESTED_ADK} is. The page docs/recipes/adk-versions.md says what may differ.`
}
