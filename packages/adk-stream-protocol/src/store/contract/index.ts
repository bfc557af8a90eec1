export type { ContractTest } from './contract-test.ts'
export type { ContractDatabase, StoreContractOptions } from './store.contract.ts'
export { CONTRACT_START, storeContract } from './store.contract.ts'
