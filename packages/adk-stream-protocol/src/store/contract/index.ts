export type { ContractDatabase, ContractTest, StoreContractOptions } from './contract-test.ts'
export { CONTRACT_START } from './contract-test.ts'
export { storeContract } from './store.contract.ts'
