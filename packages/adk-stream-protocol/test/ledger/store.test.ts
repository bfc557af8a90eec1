import { describe, test } from 'vitest'

import { approvalContract } from '../../src/store/contract/approvals.contract.ts'
import { subjects } from './support/subjects.ts'

describe.each(Object.entries(subjects))('%s', (_, open) => {
  approvalContract(test, open)
})
