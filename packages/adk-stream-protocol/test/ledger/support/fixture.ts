export * from '../../../src/store/contract/approval-fixture.ts'
