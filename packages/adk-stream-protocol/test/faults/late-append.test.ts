import { expect, test } from 'vitest'

import type { Store } from '../../src/store/index.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { Stream } from '../relay/support/servers.ts'
import { defer } from '../support/agents.ts'
import { textOf } from '../support/chat-probe.ts'
import { openTestSetup } from './support/test-setup.ts'

/** A store that stores replies late, like a database during a restart. */
function slowly(store: Store) {
  const [begun, gate] = [defer(), defer()]
  const appendEvent = store.sessions.appendEvent.bind(store.sessions)
  store.sessions.appendEvent = async (request) => {
    const { partial, author, interrupted } = request.event
    if (!partial && author !== 'user' && !interrupted) {
      begun.resolve()
      await gate.promise
    }
    return appendEvent(request)
  }
  return { store, begun, gate }
}

test.each([
  ['before the turn has ended', false],
  ['after the turn has ended without its run', true],
])(
  '[TU330] a reply that is stored while its turn is stopped, %s, is stored once',
  async (_when, isLate) => {
    let slow: ReturnType<typeof slowly> | undefined
    const wrap = (store: Store): Store => (slow = slowly(store)).store
    await using setup = await openTestSetup({ wrap })
    const person = setup.person()
    const stream = Stream.read(await person.begin('[[say Whole.]]'))
    await slow?.begun.promise
    const stopped = person.post(`/chats/${person.chatId}/stop`, {})
    if (isLate) await stream.done
    slow?.gate.resolve()
    expect((await stopped).status).toBe(204)
    const messages = await person.messages()
    expect(messages.map(textOf)).toEqual(['[[say Whole.]]', 'Whole.'])
    expect((await person.say('[[say Next.]]')).body).toContain('Next.')
  },
)

test('[TU900] a reply that is stopped after its first call was stored, and before it was streamed, is shown as stopped', async () => {
  const [begun, gate] = [defer(), defer()]
  const wrap = (store: Store): Store => {
    const appendEvent = store.sessions.appendEvent.bind(store.sessions)
    store.sessions.appendEvent = async (request) => {
      const stored = await appendEvent(request)
      if (request.event.author === 'user') return stored
      begun.resolve()
      await gate.promise
      return stored
    }
    return store
  }
  await using setup = await openTestSetup({ wrap })
  const person = setup.person()
  const stream = Stream.read(await person.begin('[[call pay {"to": "花子", "amount": 50}]]'))
  await begun.promise
  const stopped = person.post(`/chats/${person.chatId}/stop`, {})
  await stream.done
  gate.resolve()
  expect((await stopped).status).toBe(204)
  expect((await person.messages()).at(-1)).toMatchObject({ metadata: { stopped: true } })
})

/** A store whose database commits the reply after the server has given the statement up, and while the server stores what the reply left. */
function commitLate(store: Store): Store {
  const appendEvent = store.sessions.appendEvent.bind(store.sessions)
  let late: (() => Promise<unknown>) | undefined
  let isLost = false
  store.sessions.appendEvent = async (request) => {
    const { partial, author, interrupted } = request.event
    if (!isLost && !partial && author !== 'user' && !interrupted) {
      isLost = true
      late = () => appendEvent(request)
      throw new StoreError('unavailable', 'The connection was lost.')
    }
    await late?.()
    late = undefined
    return appendEvent(request)
  }
  return store
}

test('[TU1983] a reply that the database commits after the server gave it up is stored once', async () => {
  await using setup = await openTestSetup({ wrap: commitLate })
  const person = setup.person()
  expect((await person.say('[[say Whole.]]')).body).toContain('Whole.')
  expect((await person.messages()).map(textOf)).toEqual(['[[say Whole.]]', 'Whole.'])
  expect((await person.say('[[say Next.]]')).body).toContain('Next.')
  const texts = (await person.messages()).map(textOf)
  expect(texts).toEqual(['[[say Whole.]]', 'Whole.', '[[say Next.]]', 'Next.'])
})
