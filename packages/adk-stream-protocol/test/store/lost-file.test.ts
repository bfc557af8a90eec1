import { copyFile, rename } from 'node:fs/promises'
import { expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/index.ts'
import { makeFolder } from '../faults/support/folder.ts'
import { openPaymentServer } from '../faults/support/payment-server.ts'
import { Person, readEffects } from '../faults/support/person.ts'

const PAY = '[[call pay {"to": "花子", "amount": 50}]] [[then]] [[say Paid.]]'

test.each(['deleted', 'replaced'])(
  '[ST800] [HO340] a server whose database file is %s accepts no decision, and continues when the file is back',
  async (how) => {
    await using folder = await makeFolder()
    const { database } = folder
    await using store = await openSqliteStore({ path: database })
    await using server = await openPaymentServer({ store, effects: folder.effects })
    const person = new Person(server.url)
    const { approvalId } = await person.ask(PAY)
    await rename(database, `${database}.away`)
    if (how === 'replaced') await copyFile(`${database}.away`, database)
    expect(await person.decide(approvalId, { approved: true })).toMatchObject({
      status: 503,
      code: 'store-failed',
    })
    const ready = await fetch(`${server.url}/ready`)
    expect(await ready.json()).toMatchObject({ check: 'store', reason: 'corrupt' })
    expect(readEffects(folder.effects)).toEqual([])
    await rename(`${database}.away`, database)
    expect(await person.decide(approvalId, { approved: true })).toMatchObject({ status: 200 })
    await expect.poll(() => readEffects(folder.effects), { timeout: 30_000 }).toHaveLength(1)
  },
)
