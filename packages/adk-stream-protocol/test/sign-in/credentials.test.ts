import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

import { FunctionTool } from '@google/adk'
import type { InMemorySpanExporter } from '@opentelemetry/sdk-trace-base'
import { beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { openSqliteStore } from '../../src/store/index.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { recordSpans } from '../support/spans.ts'
import { authConfig, SignInBridge } from './support/sign-in-bridge.ts'

let exporter: InMemorySpanExporter
beforeAll(() => {
  exporter = recordSpans()
})

test('[AP433] no token reaches the database, a client, the model, a log, a span or the audit record', async () => {
  await using folder = await temporaryDirectory()
  const file = folder.file('store.db')
  const store = await openSqliteStore({ path: file })
  const texts: string[] = []
  const secrets: string[] = []
  {
    let calls = 0
    await using bridge = await SignInBridge.open({
      store,
      exposeToolErrors: true,
      exposeState: () => true,
      use: (token, context) => {
        calls += 1
        // What ADK's OpenAPI tools do, and what careless tools do.
        context.state.set('oauth2_existing_exchanged_credential', { accessToken: token })
        context.state.set('user:note', `Bearer ${token}`)
        context.state.set('harmless', 'kept')
        if (calls === 2) throw new Error(`GET /mail?access_token=${token} failed`)
        return { header: `Bearer ${token}`, nested: [{ token }], [token]: 1, mail: 'Hello.' }
      },
    })
    const hanako = bridge.person()
    await hanako.signIn(await hanako.ask())
    const parts = await hanako.untilSaid('Done.')
    expect(JSON.stringify(parts)).toContain('[removed: a credential]')
    expect(JSON.stringify(parts)).toContain('Hello.')
    await hanako.say('[[call read_mail {}]][[then]][[say Failed.]]')
    for (const target of ['/approvals', '/chats', '/sign-ins', '/chats/chat-1/timeline'])
      await hanako.request('GET', target)
    for (const entry of (await bridge.server.bridge.audit()).entries)
      texts.push(JSON.stringify(entry))
    texts.push(
      ...hanako.received,
      JSON.stringify(bridge.server.reported),
      JSON.stringify(bridge.logs),
      ...bridge.server.errors.map((error) => `${String(error)} ${(error as Error).stack}`),
      JSON.stringify(bridge.server.emulator.requests),
      ...exporter
        .getFinishedSpans()
        .map(({ name, attributes, events }) => JSON.stringify([name, attributes, events])),
    )
    expect(bridge.tokens).toHaveLength(2)
    expect(exporter.getFinishedSpans().length).toBeGreaterThan(0)
    secrets.push(...bridge.oauth.issued, ...bridge.tokens, bridge.oauth.provider.clientSecret ?? '')
  }
  await store.close()
  for (const name of readdirSync(path.dirname(file)))
    texts.push(readFileSync(path.join(path.dirname(file), name), 'latin1'))
  const all = texts.join('\n')
  expect(all).toContain('harmless')
  expect(secrets.length).toBeGreaterThanOrEqual(4)
  for (const secret of secrets) expect([secret, all.includes(secret)]).toEqual([secret, false])
})

test('[AP434] an expired token is refreshed before the tool uses it, once, whichever server runs the call', async () => {
  await using folder = await temporaryDirectory()
  const first = await openSqliteStore({ path: folder.file('store.db') })
  const second = await openSqliteStore({ path: folder.file('store.db') })
  // Access tokens that are about to expire are as good as expired.
  await using _ = {
    [Symbol.asyncDispose]: async () => {
      await first.close()
      await second.close()
    },
  }
  await using one = await SignInBridge.open({ store: first, oauth: { accessTokenSeconds: 20 } })
  await using two = await SignInBridge.open({ store: second, sharedOAuth: one.oauth })
  const hanako = one.person()
  // The person signs in at the other server.
  const id = await hanako.ask()
  const callback = await hanako.authorize(id)
  const elsewhere = two.person()
  elsewhere.steal(hanako, new URL(callback).origin)
  expect((await elsewhere.visit(callback)).status).toBe(200)
  await hanako.untilSaid('Done.')
  expect(one.oauth.grants).toEqual(['authorization_code', 'refresh_token'])

  const chats = ['a', 'b', 'c', 'd']
  await Promise.all(
    chats.map((chat, index) =>
      (index % 2 === 0 ? hanako : elsewhere).say(
        '[[call read_mail {}]][[then]][[say Read.]]',
        chat,
      ),
    ),
  )
  // Each refresh used the newest refresh token: the provider revokes everything if an old one is used again.
  expect(one.oauth.grants.filter((grant) => grant.includes('refused'))).toEqual([])
  for (const token of [...one.tokens, ...two.tokens])
    expect(await one.oauth.whoIs(token)).toBe('hanako')

  // A refresh that the provider refuses leads to the question again.
  one.oauth.isRefusing = true
  const again = await hanako.ask(undefined, 'chat-2')
  expect(await hanako.questions()).toMatchObject([{ id: again, kind: 'sign-in' }])
  expect(await hanako.signIns()).toEqual([])
})

test('[AP434] a token that the service rejects is refreshed once, and then the person is asked again', async () => {
  const rejected = new Set<string>()
  const config = authConfig()
  const strict = new FunctionTool({
    name: 'strict',
    description: 'Asks for another credential if the service rejects it.',
    parameters: z.object({}),
    execute: (_args, context) => {
      const token = context?.getAuthResponse(config)?.oauth2?.accessToken
      if (token !== undefined && !rejected.has(token)) return { token: 'accepted' }
      context?.requestCredential(config)
      return { status: 'pending' }
    },
  })
  await using bridge = await SignInBridge.open({ tools: [strict] })
  const hanako = bridge.person()
  await hanako.signIn(await hanako.ask())
  await hanako.untilSaid('Done.')
  rejected.add(bridge.tokens[0] ?? '')
  const text = await hanako.say('[[call strict {}]][[then]][[say Fresh.]]')
  expect(text).toContain('accepted')
  expect(bridge.oauth.grants).toEqual(['authorization_code', 'refresh_token'])
})

test('[AP435] a person can list and revoke a sign-in, and sign in as somebody else', async () => {
  await using bridge = await SignInBridge.open()
  const [hanako, taro] = [bridge.person(), bridge.person('taro')]
  await hanako.signIn(await hanako.ask())
  await hanako.untilSaid('Done.')
  const listed = await hanako.signIns()
  expect(listed).toEqual([
    {
      provider: 'example',
      label: 'Example',
      scopes: ['email', 'offline_access', 'openid'],
      account: 'hanako@example.com',
      signedInAt: expect.any(Number) as unknown,
    },
  ])
  // Only of the person itself.
  expect(await taro.signIns()).toEqual([])
  expect((await taro.request('DELETE', '/sign-ins/example')).body.error?.code).toBe(
    'unknown-sign-in',
  )
  const [token] = bridge.tokens
  expect(await bridge.oauth.whoIs(token)).toBe('hanako')
  expect((await hanako.request('DELETE', '/sign-ins/example')).body).toEqual({ revoked: true })
  expect(await bridge.oauth.whoIs(token)).toBeUndefined()

  bridge.oauth.account = 'work-account'
  const id = await hanako.ask(undefined, 'chat-2')
  expect(await hanako.signIn(id, { prompt: 'login' })).toMatchObject({ status: 200 })
  expect(bridge.oauth.requests.at(-1)?.get('prompt')).toBe('login')
  const parts = await hanako.untilSaid('Done.', 'chat-2')
  expect(JSON.stringify(parts)).toContain('work-account')

  // The data of a principal includes their credentials.
  await bridge.server.bridge.deletePrincipal('hanako', { audit: 'keep' })
  expect(await hanako.signIns()).toEqual([])
})

const check = (key: string): boolean => key === 'the right key'

test('[AP436] an API key is a sign-in too: the person enters it, and the server checks and keeps it', async () => {
  await using bridge = await SignInBridge.open({
    providers: { maps: { type: 'apiKey', label: 'Maps', help: 'In the settings of Maps.', check } },
    use: (key) => ({ length: key.length }),
  })
  const hanako = bridge.person()
  const id = await hanako.ask('maps')
  expect(await hanako.questions()).toMatchObject([
    { signIn: { type: 'apiKey', label: 'Maps', help: 'In the settings of Maps.' } },
  ])
  expect((await hanako.begin(id)).status).toBe(400)
  expect((await hanako.begin(id, { apiKey: 'wrong' })).body.error?.code).toBe('sign-in-failed')
  expect((await hanako.begin(id, { apiKey: 'the right key' })).body).toEqual({ signedIn: true })
  expect(JSON.stringify(await hanako.untilSaid('Done.'))).toContain('"length":13')
  expect((await hanako.begin(id, { apiKey: 'the right key' })).body.error?.code).toBe(
    'approval-decided',
  )
  expect(hanako.received.join('')).not.toContain('the right key')
})

test('[AP431] declining ends the call with an error, and the model continues', async () => {
  await using bridge = await SignInBridge.open()
  const hanako = bridge.person()
  const id = await hanako.ask()
  bridge.oauth.declines = true
  const page = await hanako.signIn(id)
  expect([page.status, page.text.includes('You did not sign in')]).toEqual([200, true])
  await hanako.untilState(id, 'requested')
  await hanako.request('POST', `/approvals/${id}`, { approved: false, reason: 'not now' })
  const parts = await hanako.untilSaid('Done.')
  expect(parts).toContainEqual(expect.objectContaining({ state: 'output-error' }))
  expect(bridge.tokens).toEqual([])
})

test('[AP438] a sign-in approves nothing: the tool sees no confirmation, and an approval comes first', async () => {
  const seen: unknown[] = []
  const config = authConfig()
  const pay = new FunctionTool({
    name: 'pay',
    description: 'Pays if the person confirms, in the service that they sign in to.',
    parameters: z.object({}),
    execute: (_args, context) => {
      if (!context?.getAuthResponse(config)) {
        context?.requestCredential(config)
        return { status: 'pending' }
      }
      seen.push(context.toolConfirmation)
      return { paid: false }
    },
  })
  const guarded = new FunctionTool({
    name: 'guarded',
    description: 'Needs an approval and a sign-in.',
    parameters: z.object({}),
    execute: (_args, context) => {
      if (context?.getAuthResponse(config)) return { done: true }
      context?.requestCredential(config)
      return { status: 'pending' }
    },
  })
  await using bridge = await SignInBridge.open({
    tools: [pay, guarded],
    approvals: { guarded: true },
  })
  const hanako = bridge.person()
  await hanako.say('[[call pay {}]][[then]][[say Done.]]')
  const [asked] = await hanako.questions()
  await hanako.signIn(asked?.id ?? '')
  await hanako.untilSaid('Done.')
  expect(seen).toEqual([undefined])

  // With a credential, the approved call runs.
  await hanako.say('[[call guarded {}]][[then]][[say Ran.]]', 'chat-2')
  const [approval] = await hanako.questions()
  expect(approval?.kind).toBeUndefined()
  await hanako.request('POST', `/approvals/${approval?.id}`, { approved: true })
  expect(JSON.stringify(await hanako.untilSaid('Ran.', 'chat-2'))).toContain('"done":true')
})

test('[AP439] a credential that no provider is configured for fails the call, and is reported', async () => {
  await using bridge = await SignInBridge.open()
  const hanako = bridge.person()
  expect(
    await hanako.say('[[call read_mail {"provider":"other"}]][[then]][[say Failed.]]'),
  ).toContain('Failed.')
  expect(await hanako.questions()).toEqual([])
  expect(String(bridge.server.errors[0])).toContain('signIn.providers')
})
