export * from '../../../src/store/contract/fixtures.ts'
