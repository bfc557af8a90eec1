import { expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/index.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { callPayment, paymentTool, Wallet } from '../approvals/support/payments.ts'
import { nest, through } from './support/nesting.ts'
import type { SignInPerson } from './support/sign-in-bridge.ts'
import { readMail, SignInBridge } from './support/sign-in-bridge.ts'

const RAN = ['requested', 'approved', 'started', 'succeeded']

/** Asks for mail, approves the call, and returns the ids of the approval and of the sign-in that follows. */
async function approve(
  person: SignInPerson,
  { text = readMail(), body = {} }: { text?: string; body?: object } = {},
): Promise<readonly [approval: string, signIn: string]> {
  await person.say(text)
  const [approval] = await person.questions()
  expect(approval).toMatchObject({ toolName: 'read_mail' })
  expect(approval).not.toHaveProperty('kind')
  const decided = { approved: true, ...body }
  expect((await person.request('POST', `/approvals/${approval?.id}`, decided)).status).toBe(200)
  const signIn = await person.untilAsked()
  expect(await person.questions()).toMatchObject([{ id: signIn, kind: 'sign-in' }])
  return [approval?.id ?? '', signIn]
}

async function historyOf(person: SignInPerson, id: string): Promise<readonly string[]> {
  const { body } = await person.request('GET', `/approvals/${id}`)
  return (body.history ?? []).map(({ type }) => type)
}

test.each([[[]], [['desk']], [['agency', 'desk']]] as const)(
  '[AP502] a call inside %j is approved once, then waits for a sign-in, and runs once with the credential',
  async (names) => {
    await using bridge = await SignInBridge.open({
      makeAgent: nest(names),
      requireConfirmation: true,
    })
    const hanako = bridge.person()
    const [approval, signIn] = await approve(hanako, { text: through(names, readMail()) })
    expect(bridge.tokens).toEqual([])
    expect((await hanako.signIn(signIn)).status).toBe(200)
    const parts = await hanako.untilSaid(names[0] === undefined ? 'Done.' : `After ${names[0]}.`)
    const shown = parts.filter(({ type }) => type === 'tool-read_mail')
    expect(shown).toMatchObject([
      { output: { account: 'hanako' } },
      { output: { status: 'signed-in' } },
    ])
    expect(bridge.tokens).toHaveLength(1)
    expect(await historyOf(hanako, approval)).toEqual(RAN)
    expect(await historyOf(hanako, signIn)).toEqual(RAN)
    expect(await hanako.questions()).toEqual([])
    expect(bridge.server.errors).toEqual([])
  },
)

test('[AP430] a call that another person approves runs with the sign-in of the owner of the chat', async () => {
  await using bridge = await SignInBridge.open({
    approvals: {
      read_mail: ({ args }) =>
        args['provider'] !== undefined && { deciders: { principals: ['mari'] } },
    },
  })
  const [hanako, mari] = [bridge.person(), bridge.person('mari')]
  // Both have a credential at the provider.
  for (const person of [hanako, mari]) {
    await person.say(readMail())
    expect((await person.signIn(await person.untilAsked())).status).toBe(200)
    await person.untilSaid('Done.')
  }
  expect(bridge.tokens).toHaveLength(2)
  await hanako.say(readMail('example'))
  const [asked] = await mari.questions()
  const decided = await mari.request('POST', `/approvals/${asked?.id}`, { approved: true })
  expect(decided.status).toBe(200)
  await expect.poll(() => bridge.tokens).toHaveLength(3)
  expect(bridge.tokens[2]).toBe(bridge.tokens[0])

  // Without a credential, the owner is asked for the sign-in, and the credential of the approver is not used.
  const taro = bridge.person('taro')
  await taro.say(readMail('example'))
  const [waiting] = await mari.questions()
  await mari.request('POST', `/approvals/${waiting?.id}`, { approved: true })
  const signIn = await taro.untilAsked()
  expect(await mari.questions()).toEqual([])
  expect((await mari.request('POST', `/sign-ins/${signIn}`, {})).status).toBe(404)
  expect(bridge.tokens).toHaveLength(3)
  expect((await taro.signIn(signIn)).status).toBe(200)
  await expect.poll(() => bridge.tokens).toHaveLength(4)
  expect(bridge.tokens.slice(0, 3)).not.toContain(bridge.tokens[3])
})

test('[AP502] an approved call whose sign-in is declined does not run, and nobody is asked again', async () => {
  await using bridge = await SignInBridge.open({ requireConfirmation: true })
  const hanako = bridge.person()
  const [, signIn] = await approve(hanako)
  await hanako.request('POST', `/approvals/${signIn}`, { approved: false })
  const parts = await hanako.untilSaid('Done.')
  expect(parts.filter(({ type }) => type === 'tool-read_mail')).toMatchObject([
    { output: { status: 'denied' } },
    { state: 'output-error' },
  ])
  expect(bridge.tokens).toEqual([])
  expect(await hanako.questions()).toEqual([])
})

test('[AP502] the arguments that the person edited are those that run after the sign-in', async () => {
  await using bridge = await SignInBridge.open({
    requireConfirmation: true,
    use: () => ({ read: true }),
  })
  const hanako = bridge.person()
  const body = { args: { provider: 'example' } }
  const [, signIn] = await approve(hanako, { body })
  await hanako.signIn(signIn)
  const parts = await hanako.untilSaid('Done.')
  expect(parts.find(({ type }) => type === 'tool-read_mail')).toMatchObject({
    output: { read: true },
  })
  expect(bridge.tokens).toHaveLength(1)
  const shown = JSON.stringify(parts)
  expect(shown).toContain('"editedArgs":{"provider":"example"}')
})

test('[AP1220] an approved call that uses no credential runs although the credentials cannot be read', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const { credentials } = store
  if (!credentials) throw new Error('The store keeps no credentials.')
  credentials.list = () => Promise.reject(new Error('The database is away.'))
  const wallet = new Wallet()
  await using bridge = await SignInBridge.open({ store, tools: [paymentTool(wallet)] })
  const hanako = bridge.person()
  await hanako.say(`${callPayment(50)}[[then]][[say Done.]]`)
  const [asked] = await hanako.questions()
  await hanako.request('POST', `/approvals/${asked?.id}`, { approved: true })
  await hanako.untilSaid('Done.')
  expect(await historyOf(hanako, asked?.id ?? '')).toEqual(RAN)
  expect(wallet.payments).toHaveLength(1)
  // A tool that uses one fails, and the person is not asked to sign in again.
  await hanako.say(readMail())
  expect(JSON.stringify(await hanako.untilSaid('Done.'))).toContain('"output-error"')
  expect(await hanako.questions()).toEqual([])
})

test('[AP502] a restart between the approval and the sign-in loses neither', async () => {
  await using folder = await temporaryDirectory()
  const open = () => openSqliteStore({ path: folder.file('store.db') })
  const store = await open()
  const first = await SignInBridge.open({ store, requireConfirmation: true })
  await using oauth = first.oauth
  const before = first.person()
  const [approval, signIn] = await approve(before)
  await before.untilState(approval, 'succeeded')
  await first.server[Symbol.asyncDispose]()
  await store.close()
  await using again = await open()
  await using second = await SignInBridge.open({
    store: again,
    sharedOAuth: oauth,
    requireConfirmation: true,
  })
  const hanako = second.person()
  expect((await hanako.signIn(signIn)).status).toBe(200)
  expect(JSON.stringify(await hanako.untilSaid('Done.'))).toContain('"account":"hanako"')
  expect(second.tokens).toHaveLength(1)
  expect(await historyOf(hanako, approval)).toEqual(RAN)
})

test('[AP502] a policy that allows a call which declares an approval leaves the sign-in', async () => {
  await using bridge = await SignInBridge.open({
    requireConfirmation: true,
    approvals: { read_mail: false },
  })
  const hanako = bridge.person()
  const id = await hanako.ask()
  expect(await hanako.questions()).toMatchObject([{ id, kind: 'sign-in' }])
  await hanako.signIn(id)
  await hanako.untilSaid('Done.')
  expect(bridge.tokens).toHaveLength(1)
})
