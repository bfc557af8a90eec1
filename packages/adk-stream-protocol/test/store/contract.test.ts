import { describe, test } from 'vitest'

import { sessionContract } from '../../src/store/contract/sessions.contract.ts'
import { sessionServices } from './support/subjects.ts'

describe.each(Object.entries(sessionServices))('%s', (_name, open) => {
  sessionContract(test, open)
})
