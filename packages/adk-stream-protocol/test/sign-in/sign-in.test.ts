import { Modality } from '@google/genai'
import { expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/index.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { readMail, SignInBridge } from './support/sign-in-bridge.ts'

test('[AP430] a tool that requests a credential waits until the person has signed in, and then runs with it', async () => {
  await using bridge = await SignInBridge.open()
  const hanako = bridge.person()
  const id = await hanako.ask()
  expect(await hanako.questions()).toMatchObject([
    {
      id,
      kind: 'sign-in',
      toolName: 'read_mail',
      signIn: {
        provider: 'example',
        label: 'Example',
        scopes: ['openid', 'email', 'offline_access'],
      },
    },
  ])
  const page = await hanako.signIn(id)
  expect([page.status, page.text.includes('You are signed in')]).toEqual([200, true])
  const parts = await hanako.untilSaid('Done.')
  expect(parts).toContainEqual(
    expect.objectContaining({ type: 'tool-read_mail', output: { account: 'hanako' } }),
  )
  expect(bridge.tokens).toHaveLength(1)
  const { history } = await hanako.untilState(id, 'succeeded')
  expect(history?.map(({ type }) => type)).toEqual([
    'requested',
    'approved',
    'started',
    'succeeded',
  ])
  // The next call uses the stored credential.
  await hanako.say('[[call read_mail {}]][[then]][[say Again.]]')
  expect(bridge.tokens).toEqual([bridge.tokens[0], bridge.tokens[0]])
  expect(bridge.server.errors).toEqual([])
})

test('[AP430] a live conversation waits for the sign-in, and the tool runs with the credential', async () => {
  await using bridge = await SignInBridge.open({
    live: (model) => ({ model, runConfig: { responseModalities: [Modality.TEXT] } }),
  })
  const hanako = bridge.person()
  await using client = await SocketClient.open(bridge.server.url, {
    headers: { 'x-api-key': 'hanako' },
  })
  client.say(readMail())
  const id = await hanako.untilAsked()
  client.send({ type: 'decide', decisionId: 'd1', id: 'chat-1', approvalId: id, approved: true })
  expect(await client.nextOf('decided')).toMatchObject({ ok: false, code: 'sign-in-needed' })
  expect((await hanako.signIn(id)).status).toBe(200)
  await hanako.untilState(id, 'succeeded')
  expect(JSON.stringify(await hanako.untilSaid('"account":"hanako"'))).toContain('output-available')
  expect(bridge.tokens).toHaveLength(1)
  // The next call of the conversation uses the stored credential.
  client.say('[[call read_mail {}]][[then]][[say Again.]]', 'r2')
  await hanako.untilSaid('Again.')
  expect(bridge.tokens).toHaveLength(2)
})

test('[AP430] a question outlives the server: the sign-in ends at the next one, which runs the call', async () => {
  await using folder = await temporaryDirectory()
  const open = () => openSqliteStore({ path: folder.file('store.db') })
  const store = await open()
  const first = await SignInBridge.open({ store })
  await using oauth = first.oauth
  const before = first.person()
  const id = await before.ask()
  const callback = await before.authorize(id)
  await first.server[Symbol.asyncDispose]()
  await store.close()
  await using again = await open()
  await using second = await SignInBridge.open({ store: again, sharedOAuth: oauth })
  const hanako = second.person()
  hanako.steal(before, new URL(callback).origin)
  expect((await hanako.visit(callback)).status).toBe(200)
  expect(JSON.stringify(await hanako.untilSaid('Done.'))).toContain('"account":"hanako"')
})

test('[AP516] an API key that arrives while the person declines is not kept', async () => {
  const declines: (() => Promise<unknown>)[] = []
  await using bridge = await SignInBridge.open({
    providers: {
      maps: {
        type: 'apiKey',
        label: 'Maps',
        check: async () => {
          for (const decline of declines) await decline()
          return true
        },
      },
    },
  })
  const hanako = bridge.person()
  const id = await hanako.ask('maps')
  declines.push(() => hanako.request('POST', `/approvals/${id}`, { approved: false }))
  const { status, body } = await hanako.begin(id, { apiKey: 'a key' })
  expect([status, body.error?.code]).toEqual([409, 'approval-decided'])
  await hanako.untilState(id, 'denied')
  expect(await hanako.signIns()).toEqual([])
  expect(bridge.tokens).toEqual([])
})

test('[AP1900] the address of a question leads to the provider, or to a form for an API key', async () => {
  const label = 'Maps & <b>'
  await using bridge = await SignInBridge.open({
    providers: { maps: { type: 'apiKey', label, check: () => true } },
  })
  const [hanako, mallory] = [bridge.person(), bridge.person('mallory')]
  const id = await hanako.ask()
  expect(await mallory.request('GET', `/sign-ins/${id}`)).toMatchObject({
    status: 400,
    text: expect.stringContaining('Close this window') as string,
  })
  const { status, headers } = await hanako.open(id)
  expect([status, headers.get('set-cookie')]).toEqual([303, expect.stringContaining('HttpOnly')])
  expect((await hanako.visit(headers.get('location') ?? '')).text).toContain('You are signed in')
  await hanako.untilSaid('Done.')
  expect((await hanako.open(id)).status).toBe(410)
  const other = await hanako.ask('maps', 'chat-2')
  const form = await hanako.open(other)
  expect([form.status, await form.text()]).toEqual([
    200,
    expect.stringContaining('Maps &amp; &lt;b&gt;: API key') as string,
  ])
  expect(form.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  expect(bridge.server.errors).toEqual([])
})
