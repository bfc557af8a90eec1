import { type BaseTool, MCPToolset } from '@google/adk'
import { expect, test } from 'vitest'

import { adkApi } from '../../src/client/index.ts'
import type { Page } from '../approvals/support/page.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { planTool } from '../../src/server/index.ts'
import { AG_UI_VERSIONS, AgUiClient } from '../ag-ui/support/ag-ui-client.ts'
import { assistant } from '../support/agents.ts'
import { serveHttp } from '../support/mcp-servers.ts'
import { BUDGET, listGrants, offersOf } from './support/grants.ts'

const AMOUNTS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

interface Waiting {
  readonly page: Page
  readonly ids: readonly string[]
  /** Decides one of the calls, with or without the grant that it offers. */
  readonly decide: (id: string, withGrant: boolean) => Promise<number>
  readonly api: ReturnType<typeof adkApi>
}

interface Crossing {
  readonly act: (waiting: Waiting) => Promise<unknown>
  readonly paid: number
  readonly left: number
  readonly grants: number
}

/** What people do about ten calls that wait in a chat, and each offer the same grant. */
const CROSSINGS: Readonly<Record<string, Crossing>> = {
  'one is granted: the others still wait': {
    act: ({ ids: [first = ''], decide }) => decide(first, true),
    paid: 1,
    left: 9,
    grants: 1,
  },
  'two tabs grant the same call at once': {
    act: ({ ids: [first = ''], decide }) => Promise.all([decide(first, true), decide(first, true)]),
    paid: 1,
    left: 9,
    grants: 1,
  },
  'two tabs grant two calls at once: one grant replaces the other': {
    act: ({ ids: [first = '', second = ''], decide }) =>
      Promise.all([decide(first, true), decide(second, true)]),
    paid: 2,
    left: 8,
    grants: 1,
  },
  'all are granted at once': {
    act: ({ ids, decide }) => Promise.all(ids.map((id) => decide(id, true))),
    paid: 10,
    left: 0,
    grants: 1,
  },
  'all are approved together, without a grant': {
    act: ({ ids, api }) =>
      api.decideTogether(ids.map((approvalId) => ({ approvalId, approved: true }))),
    paid: 10,
    left: 0,
    grants: 0,
  },
  'one is granted, while all are approved together': {
    act: ({ ids, api, decide }) =>
      Promise.all([
        decide(ids[0] ?? '', true),
        api.decideTogether(ids.slice(1).map((approvalId) => ({ approvalId, approved: true }))),
      ]),
    paid: 10,
    left: 0,
    grants: 1,
  },
}

test.each(Object.entries(CROSSINGS))(
  '[GR1620] [GR1625] [AP1700] of ten calls that wait, %s',
  async (_what, { act, paid, left, grants }) => {
    await using testBridge = await TestBridge.open({
      approvals: { process_payment: { grants: [BUDGET], plans: true } },
      tools: (wallet) => {
        const payment = paymentTool(wallet)
        return [payment, planTool({ tools: [payment] })]
      },
    })
    const page = testBridge.page()
    const text = `${AMOUNTS.map((amount) => callPayment(amount)).join('')}[[then]][[say Done.]]`
    const parts = [{ type: 'text', text }]
    await page.post({ id: 'chat-1', messages: [{ id: 'u1', role: 'user', parts }] })
    const waiting = await page.inbox()
    const [offer] = offersOf(waiting[0])
    const ids = waiting.map(({ id }) => id)
    const decide = async (id: string, withGrant: boolean): Promise<number> =>
      (await page.decide(id, { approved: true, ...(withGrant && { offer: offer?.id }) })).status
    const api = adkApi({ url: testBridge.url, headers: { 'x-api-key': 'hanako' } })
    await act({ page, ids, decide, api })
    await expect.poll(() => testBridge.wallet.payments).toHaveLength(paid)
    expect(await page.inbox()).toHaveLength(left)
    const open = (await listGrants(page)).filter(({ state }) => state === 'open')
    expect(open.map(({ uses }) => uses)).toEqual(Array.from({ length: grants }, () => 0))
    expect(testBridge.errors).toEqual([])
  },
)

const FILES = [{ name: 'remove', annotations: { openWorldHint: false } }]
const REDECLARED = [{ name: 'remove', title: 'Remove all', annotations: { openWorldHint: false } }]
const STEP = { tool: 'files_remove', args: {} }
const FIRST = {
  'a grant': '[[call files_remove {}]]',
  'a plan': `[[call propose_plan ${JSON.stringify({ steps: [STEP, STEP] })}]][[then]][[call files_remove {}]]`,
}

/** What has become of the server when the call is made again, and how often it is asked for. */
const CHANGES = [
  ['with the same server', FILES, 0],
  ['if the server declares the tool differently', REDECLARED, 1],
  ['if another server declares the same tool', undefined, 1],
] as const

test.each(
  (['a grant', 'a plan'] as const).flatMap((what) =>
    CHANGES.map(([change, declared, asked]) => [what, change, asked, declared] as const),
  ),
)(
  '[GR1621] [GR1654] [GR1942] after %s for a tool of an MCP server, and a restart %s, a call is asked for %i times',
  async (what, _change, asked, declared) => {
    await using files = await serveHttp(FILES)
    await using others = await serveHttp(FILES)
    let { connection } = files
    let known: BaseTool[] = await new MCPToolset(connection, [], 'files').getTools()
    await using testBridge = await TestBridge.open({
      approvals: { 'files_*': { grants: [{ maxUses: 5 }], plans: true } },
      agent: (model) => {
        const toolset = new MCPToolset(connection, [], 'files')
        return assistant(model, { tools: [toolset, planTool({ tools: known })] })
      },
    })
    const page = testBridge.page()
    const say = (id: string, text: string) =>
      page.post({
        id: 'chat-1',
        messages: [{ id, role: 'user', parts: [{ type: 'text', text }] }],
      })
    await say('u1', `${FIRST[what]}[[then]][[say One.]]`)
    const [first] = await page.inbox()
    const [offer] = first ? offersOf(first) : []
    await page.decide(first?.id ?? '', { approved: true, ...(offer && { offer: offer.id }) })
    await page.untilMessages((messages) => JSON.stringify(messages).includes('One.'))
    expect(files.calls()).toEqual(['remove'])
    if (declared) files.list(declared)
    else ({ connection } = others)
    known = await new MCPToolset(connection, [], 'files').getTools()
    await testBridge.restart()
    await say('u2', '[[call files_remove {}]][[then]][[say Two.]]')
    expect(await page.inbox()).toHaveLength(asked)
    expect([...files.calls(), ...others.calls()]).toHaveLength(2 - asked)
  },
)

test.each(AG_UI_VERSIONS)(
  '[GR1650] a client of AG-UI approves a plan, and its calls run without asking ($name)',
  async (version) => {
    await using testBridge = await TestBridge.open({
      approvals: { process_payment: { plans: true } },
      tools: (wallet) => {
        const payment = paymentTool(wallet)
        return [payment, planTool({ tools: [payment] })]
      },
    })
    const steps = [1, 2].map((amount) => ({
      tool: 'process_payment',
      args: { amount, recipient: 'Bob' },
    }))
    const calls = `${callPayment(1, 'Bob')}${callPayment(2, 'Bob')}${callPayment(3, 'Bob')}`
    const client = new AgUiClient(version, { url: testBridge.url })
    await client.say(
      `[[call propose_plan ${JSON.stringify({ steps })}]][[then]]${calls}[[then]][[say Done.]]`,
    )
    const [asked] = client.pending
    await client.answer({ [asked?.id ?? '']: { approved: true } })
    expect(testBridge.wallet.payments.map(({ amount }) => amount)).toEqual([1, 2])
    const [further] = client.pending
    await client.answer({ [further?.id ?? '']: { approved: false, reason: 'No' } })
    expect(client.text).toContain('Done.')
    expect(testBridge.wallet.payments).toHaveLength(2)
  },
)
