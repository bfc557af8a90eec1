import { describe, test } from 'vitest'

import {
  type ContractDatabase,
  CONTRACT_START,
  storeContract,
} from '../../src/store/contract/index.ts'
import { openWithClocks } from '../../src/store/sqlite/sqlite-store.ts'
import { CLOCK, moveClock, openWithClock } from '../ledger/support/subjects.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { openTestStores } from '../support/postgres-stores.ts'
import type { Store } from '../../src/store/store.ts'

async function openSqlite(): Promise<ContractDatabase> {
  const folder = await temporaryDirectory()
  const stores: Store[] = []
  const path = folder.file('store.db')
  const connection = await openWithClock(path)
  let leaseNow = CONTRACT_START
  return {
    open: async () => {
      const store = await openWithClocks({ path }, { clock: CLOCK, leaseClock: () => leaseNow })
      stores.push(store)
      return store
    },
    setClocks: (at) => {
      moveClock(connection, at)
      leaseNow = at
    },
    [Symbol.asyncDispose]: async () => {
      for (const store of stores) await store.close()
      connection.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

describe('sqlite', () => {
  storeContract({ test, open: openSqlite })
})

describe('postgres', () => {
  storeContract({ test, open: openTestStores })
})
