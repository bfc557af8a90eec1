/** Defines one test. `test` of vitest, of jest and of `node:test` fits. */
export type ContractTest = (name: string, run: () => Promise<void>) => unknown
