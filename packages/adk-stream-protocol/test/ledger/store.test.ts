import { describe, test } from 'vitest'

import { isLong } from '../../../../test/support/long-run.ts'
import { approvalContract } from '../../src/store/contract/approvals.contract.ts'
import { subjects } from './support/subjects.ts'

// `npm test` runs the contract of the databases in `store/suite.test.ts`.
const shortRun = Object.entries(subjects).filter(([name]) => name === 'in memory')

describe.each(isLong ? Object.entries(subjects) : shortRun)('%s', (_, open) => {
  approvalContract(test, open)
})
