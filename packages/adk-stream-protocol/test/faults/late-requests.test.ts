import { type AuthConfig, FunctionTool, requestInputTool } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { openSqliteStore } from '../../src/store/index.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { defer } from '../support/agents.ts'
import { locatedRequest, locationTool } from '../support/locating.ts'
import { makeFolder } from './support/folder.ts'
import { openPair } from './support/pair.ts'
import { openPaymentServer } from './support/payment-server.ts'
import { Person } from './support/person.ts'

const BANK: AuthConfig = {
  credentialKey: 'bank',
  authScheme: { type: 'apiKey', in: 'header', name: 'x-key' },
}

const balance = new FunctionTool({
  name: 'balance',
  description: 'Returns the balance of the person.',
  parameters: z.object({}),
  execute: (_args, toolContext) => {
    if (!toolContext?.getAuthResponse(BANK)) toolContext?.requestCredential(BANK)
    return { status: 'pending' }
  },
})

const PAY = '[[call pay {"to": "花子", "amount": 50}]]'

const CALLS = [
  { what: 'an approval', call: PAY },
  { what: 'the approval of a browser tool', call: '[[call get_location {}]]' },
  { what: 'a question', call: '[[call adk_request_input {"message": "How many nights?"}]]' },
  { what: 'a sign-in', call: '[[call balance {}]]' },
]

test.for(CALLS)(
  '[AP920] $what that a server requests after it has lost the chat is not open, and its call has ended',
  async ({ call }) => {
    // The leases end when the test says so.
    const limits = { leaseMs: 600_000, sweepMs: 3_600_000 }
    await using pair = await openPair({
      tools: [requestInputTool, balance, locationTool({ gated: true })],
      signIn: { baseUrl: 'http://localhost:4', providers: { bank: { type: 'apiKey' } } },
      ofOne: { limits },
    })
    const insert = pair.ofFirst.insert.bind(pair.ofFirst)
    const [paused, goesOn] = [defer(), defer()]
    pair.ofFirst.insert = async (...given) => {
      paused.resolve()
      await goesOn.promise
      return insert(...given)
    }
    const reply = await pair.atOne.begin(call)
    await paused.promise
    await pair.leases.expire()
    expect((await pair.atTwo.say('[[say Next.]]')).body).toContain('Next.')
    goesOn.resolve()
    expect(await reply.text()).toContain('turn-lost')
    expect(await pair.atTwo.approvals()).toEqual([])
    expect((await pair.atTwo.calls()).map(({ state }) => state)).toEqual(['output-error'])
  },
)

test('[AP921] a browser tool whose server crashed before its approval was requested has ended, and takes no result', async () => {
  const limits = { leaseMs: 600_000, sweepMs: 3_600_000 }
  await using pair = await openPair({ tools: [locationTool({ gated: true })], ofOne: { limits } })
  const [paused, crashes] = [defer(), defer()]
  pair.ofFirst.insert = async () => {
    paused.resolve()
    await crashes.promise
    throw new Error('The server has crashed.')
  }
  const reply = await pair.atOne.begin('[[call get_location {}]][[then]][[say There.]]')
  await paused.promise
  await pair.leases.expire()
  const last = (await pair.atTwo.messages()).at(-1)
  expect((await pair.atTwo.calls()).map(({ state }) => state)).toEqual(['output-error'])
  const sent = await pair.atTwo.post('/stream', locatedRequest(last))
  expect(sent).toMatchObject({ status: 409, code: 'nothing-new' })
  crashes.resolve()
  await reply.text()
})

test('[AP920] an approval whose request could not be stored is not open', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  const { sessions } = store
  const appendEvent = sessions.appendEvent.bind(sessions)
  sessions.appendEvent = async (request) => {
    if (JSON.stringify(request.event.customMetadata ?? {}).includes('"asked":'))
      throw new StoreError('full', 'The disk is full.')
    return appendEvent(request)
  }
  await using server = await openPaymentServer({ store, effects: folder.effects })
  const person = new Person(server.url)
  expect((await person.say(PAY)).chunks.at(-1)).toMatchObject({ type: 'error' })
  expect(await person.approvals()).toEqual([])
})

test('[AP920] [CL10] an approval whose reply is stopped while its request is being stored stays open', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  const { sessions } = store
  const appendEvent = sessions.appendEvent.bind(sessions)
  const [storing, goesOn] = [defer(), defer()]
  sessions.appendEvent = async (request) => {
    if (JSON.stringify(request.event.customMetadata ?? {}).includes('"asked":')) {
      storing.resolve()
      await goesOn.promise
    }
    return appendEvent(request)
  }
  await using server = await openPaymentServer({ store, effects: folder.effects })
  const person = new Person(server.url)
  const reply = await person.begin(PAY)
  await storing.promise
  const stopped = person.post('/chats/chat-1/stop', {})
  await reply.text()
  goesOn.resolve()
  await stopped
  expect(await person.approvals()).toMatchObject([{ state: 'requested' }])
})
