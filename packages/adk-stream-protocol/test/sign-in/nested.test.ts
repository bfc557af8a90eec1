import { requestInputTool } from '@google/adk'
import { expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/index.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { nest, through } from './support/nesting.ts'
import { readMail, SignInBridge } from './support/sign-in-bridge.ts'

const DEPTHS = [[['desk']], [['agency', 'desk']]] as const

test.each(DEPTHS)(
  '[AP500] a tool inside %j waits for a sign-in, runs once with the credential, and its agents continue',
  async (names) => {
    await using bridge = await SignInBridge.open({ makeAgent: nest(names) })
    const hanako = bridge.person()
    await hanako.say(through(names, readMail()))
    const [question] = await hanako.questions()
    expect(question).toMatchObject({ kind: 'sign-in', path: ['assistant', ...names] })
    expect((await hanako.signIn(question?.id ?? '')).status).toBe(200)
    const parts = await hanako.untilSaid(`After ${names[0]}.`)
    expect(parts).toContainEqual(
      expect.objectContaining({ type: 'tool-read_mail', output: { account: 'hanako' } }),
    )
    expect(bridge.tokens).toHaveLength(1)
    await hanako.untilState(question?.id ?? '', 'succeeded')
    expect(bridge.server.errors).toEqual([])
  },
)

test.each(DEPTHS)(
  '[AP500] a declined sign-in inside %j ends the call with an error, and its agents continue',
  async (names) => {
    await using bridge = await SignInBridge.open({ makeAgent: nest(names) })
    const hanako = bridge.person()
    await hanako.say(through(names, readMail()))
    const [question] = await hanako.questions()
    await hanako.request('POST', `/approvals/${question?.id}`, { approved: false })
    expect(JSON.stringify(await hanako.untilSaid(`After ${names[0]}.`))).toContain('declined')
    expect(bridge.tokens).toEqual([])
  },
)

test.each(DEPTHS)(
  '[AP500] a question inside %j is answered, also after a restart, and its agents continue',
  async (names) => {
    await using folder = await temporaryDirectory()
    const open = () => openSqliteStore({ path: folder.file('store.db') })
    const store = await open()
    const options = { makeAgent: nest(names), tools: [requestInputTool] }
    const first = await SignInBridge.open({ ...options, store })
    await using oauth = first.oauth
    const ask = '[[call adk_request_input {"message":"How many nights?"}]][[then]][[say OK.]]'
    await first.person().say(through(names, ask))
    const [question] = await first.person().questions()
    expect(question).toMatchObject({ kind: 'input', path: ['assistant', ...names] })
    await first.server[Symbol.asyncDispose]()
    await store.close()
    await using again = await open()
    await using second = await SignInBridge.open({ ...options, store: again, sharedOAuth: oauth })
    const hanako = second.person()
    await hanako.request('POST', `/approvals/${question?.id}`, { approved: true, payload: '3' })
    const parts = await hanako.untilSaid(`After ${names[0]}.`)
    expect(parts).toContainEqual(
      expect.objectContaining({ type: 'tool-adk_request_input', output: '3' }),
    )
    expect(second.server.errors).toEqual([])
  },
)
