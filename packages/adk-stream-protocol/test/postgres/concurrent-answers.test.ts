import { requestInputTool } from '@google/adk'
import { describe, expect } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { SignInBridge, type SignInPerson } from '../sign-in/support/sign-in-bridge.ts'
import { defer } from '../support/agents.ts'
import { DATABASES, type StoreDatabase } from '../support/store-databases.ts'

const CALL = `[[call adk_request_input ${JSON.stringify({ message: 'How many?' })}]]`

describe.each(DATABASES)('two servers on $name', ({ name, open }) => {
  const it = takeTurns({ group: name === 'SQLite' ? 0 : 1, groups: 2 })

  it('[AP516] of answers by two people in several tabs, one counts, and the others learn that', async () => {
    await using database = await open()
    const options = {
      openStore: database.openStore,
      isLive: false,
      tools: () => [requestInputTool],
      approvals: { adk_request_input: { deciders: { principals: ['hanako', 'taro'] } } },
    }
    await using one = await TestBridge.open(options)
    await using two = await TestBridge.open(options)
    const hanako = one.page()
    const message = {
      id: 'u1',
      role: 'user',
      parts: [{ type: 'text', text: `${CALL}[[then]][[say Thanks.]]` }],
    }
    await hanako.post({ id: 'chat-1', messages: [message] })
    const [question] = await hanako.inbox()
    const id = question?.id ?? ''
    const people = [hanako, two.page(), one.page('taro'), two.page('taro')]
    const answers = await Promise.all(
      people.map((person, index) => person.decide(id, { approved: true, payload: index })),
    )
    const won = answers.flatMap(({ status }, index) => (status === 200 ? [index] : []))
    expect(won).toHaveLength(1)
    const refused = answers.flatMap(({ status, body }) =>
      status === 200 ? [] : [[status, body.error?.code]],
    )
    expect(refused).toEqual(Array.from({ length: 3 }, () => [409, 'approval-decided']))
    await hanako.untilState(id, 'succeeded')
    const { approval, history } = await hanako.approval(id)
    expect(approval).toMatchObject({ approvedPayload: won[0] })
    expect(history.map(({ type }) => type)).toEqual([
      'requested',
      'approved',
      'started',
      'succeeded',
    ])
    await hanako.untilMessages((messages) => JSON.stringify(messages).includes('Thanks.'))
    // Once for the question, and once with the answer, by one of the servers.
    expect(one.asked + two.asked).toBe(2)
  })

  it('[AP516] of two sign-ins for one question, one counts, and its credential stays', async () => {
    await using pair = await openSignIns(open)
    const { one, two, atOne, atTwo } = pair
    const id = await atOne.ask()
    const first = await atOne.authorize(id)
    atTwo.steal(atOne, new URL(first).origin)
    const second = await atTwo.authorize(id)
    pair.holdUntilBothSave()
    const pages = await Promise.all([atOne.visit(first), atTwo.visit(second)])
    expect(pages.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 410])
    const parts = await atOne.untilSaid('Done.')
    expect(parts).toContainEqual(
      expect.objectContaining({ type: 'tool-read_mail', output: { account: 'hanako' } }),
    )
    expect([...one.tokens, ...two.tokens]).toHaveLength(1)
    expect(await atTwo.signIns()).toHaveLength(1)
    const { history } = await atOne.untilState(id, 'succeeded')
    expect(history?.filter(({ type }) => type === 'approved')).toHaveLength(1)
    // The next call uses the stored credential, at any server.
    await atTwo.say('[[call read_mail {}]][[then]][[say Again.]]')
    expect([...one.tokens, ...two.tokens]).toHaveLength(2)
    expect(await atTwo.questions()).toEqual([])
  })

  it('[AP516] a sign-in that arrives while the person declines leaves no credential, or counts', async () => {
    await using pair = await openSignIns(open)
    const { one, two, atOne, atTwo } = pair
    const id = await atOne.ask()
    const callback = await atOne.authorize(id)
    const [page, declined] = await Promise.all([
      atOne.visit(callback),
      atTwo.request('POST', `/approvals/${id}`, { approved: false }),
    ])
    expect([
      [200, 409],
      [410, 200],
    ]).toContainEqual([page.status, declined.status])
    await atOne.untilState(id, page.status === 200 ? 'succeeded' : 'denied')
    expect(await atOne.signIns()).toHaveLength(page.status === 200 ? 1 : 0)
    expect([...one.tokens, ...two.tokens]).toHaveLength(page.status === 200 ? 1 : 0)
  })

  it('[AP516] a callback that arrives at both servers is taken once', async () => {
    await using pair = await openSignIns(open)
    const { one, two, atOne, atTwo } = pair
    const id = await atOne.ask()
    const callback = await atOne.authorize(id)
    atTwo.steal(atOne, new URL(callback).origin)
    const pages = await Promise.all([atOne.visit(callback), atTwo.visit(callback)])
    expect(pages.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 400])
    await atOne.untilSaid('Done.')
    expect([...one.tokens, ...two.tokens]).toHaveLength(1)
  })
})

interface SignInPair extends AsyncDisposable {
  readonly one: SignInBridge
  readonly two: SignInBridge
  /** The same person, in a tab at each server. */
  readonly atOne: SignInPerson
  readonly atTwo: SignInPerson
  /** From now on, a credential is stored when both servers are about to store one. */
  holdUntilBothSave(): void
}

async function openSignIns(open: () => Promise<StoreDatabase>): Promise<SignInPair> {
  const database = await open()
  const stores = [await database.openStore(), await database.openStore()] as const
  const limits = { sweepMs: 100 }
  const one = await SignInBridge.open({ store: stores[0], limits })
  const two = await SignInBridge.open({ store: stores[1], limits, sharedOAuth: one.oauth })
  return {
    one,
    two,
    atOne: one.person(),
    atTwo: two.person(),
    holdUntilBothSave: () => {
      const both = defer()
      let count = 0
      for (const { credentials } of stores) {
        if (!credentials) throw new Error('The store keeps credentials.')
        const save = credentials.save.bind(credentials)
        credentials.save = async (...given) => {
          count += 1
          if (count === 2) both.resolve()
          await both.promise
          return save(...given)
        }
      }
    },
    async [Symbol.asyncDispose]() {
      await two[Symbol.asyncDispose]()
      await one[Symbol.asyncDispose]()
      for (const store of stores) await store.close()
      await database[Symbol.asyncDispose]()
    },
  }
}
