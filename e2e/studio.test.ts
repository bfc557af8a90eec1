import { type BaseLlm, FunctionTool, LlmAgent } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { isLong } from '../test/support/long-run.ts'
import { longTest } from '../test/support/long-test.ts'
import { findViolations } from './support/axe-violations.ts'
import { chatPage } from './support/chat-page.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { openTestStudio } from './support/test-studio.ts'

/** A tool with the name of one of the demo's, which does something else. */
function createPayrollAgent(calls: unknown[], model: BaseLlm): LlmAgent {
  return new LlmAgent({
    name: 'payroll',
    description: 'Prepares the payroll of the month.',
    model,
    tools: [
      new FunctionTool({
        name: 'process_payment',
        description: 'Files a payment slip. No money is sent.',
        parameters: z.object({ amount: z.number(), recipient: z.string() }),
        execute: (input) => {
          calls.push(input)
          return { filed: true }
        },
      }),
    ],
  })
}

const CALL = '[[call process_payment {"amount":30,"recipient":"Alice"}]][[then]][[say Filed.]]'

const CARDS = [
  ['en-US', 'Approve', /Send \$|Sent \$|Payment$|Place/],
  ['ja-JP', '承認', /送金|ドル/],
] as const

test.each(isLong ? CARDS : CARDS.slice(0, 1))(
  '[SD1303] [DV1675] a foreign tool has its own words, also if the demo has one of the same name, in a page without an inspector, in %s',
  async (locale, approve, words) => {
    const calls: unknown[] = []
    const [name, description] = ['payroll', 'Prepares the payroll of the month.']
    await using studio = await openTestStudio({
      agents: (model) => createPayrollAgent(calls, model),
      bridge: { approvals: { process_payment: true } },
      info: () => ({ inspector: false, agents: [{ name, description }] }),
    })
    const page = await studio.openPage({ locale })
    const { send, tool } = chatPage(page)
    await page.getByText(`${name} · ${description}`).waitFor()
    await send(CALL)
    const card = tool('process_payment')
    const button = card.getByRole('button', { name: approve, exact: true })
    await button.waitFor()
    expect(await card.innerText()).not.toMatch(words)
    await page.keyboard.press('Alt+KeyL')
    expect(await page.locator('.inspector-body, [data-shows=inspector]').count()).toBe(0)
    await takeScreenshot(page, `studio-card-${locale}`)
    expect(await findViolations(page)).toEqual([])
    await button.click()
    await page.getByText('Filed.', { exact: true }).waitFor()
    expect(calls).toEqual([{ amount: 30, recipient: 'Alice' }])
    expect(await card.innerText()).not.toMatch(words)
  },
)

const PARAMETERS = {
  type: 'object',
  properties: {
    amount: { type: 'number', description: 'In US dollars.' },
    recipient: { type: 'string' },
    tags: { type: 'array', items: { type: 'string' } },
  },
  required: ['amount', 'recipient'],
}

const GRAPH = {
  nodes: [
    { id: 'n0', name: 'payroll', kind: 'agent', model: 'gemini-2.5-flash' },
    { id: 'n1', name: 'process_payment', kind: 'tool' },
  ],
  edges: [{ from: 'n0', to: 'n1' }],
} as const

const PAYROLL = {
  name: 'payroll',
  description: 'Prepares the payroll of the month.',
  tools: [
    {
      name: 'process_payment',
      description: 'Files a payment slip. No money is sent.',
      parameters: PARAMETERS,
      approval: 'always' as const,
    },
  ],
  graph: { nodes: [...GRAPH.nodes], edges: [...GRAPH.edges] },
}

/** The panel of the inspector. The first test looks for violations on the whole page. */
const PANEL = '[role=tabpanel]'

const PHONE = { viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true }

const TOOL_TEXTS = {
  'en-US': {
    inspector: 'Show inspector',
    tab: 'Agent',
    run: 'Run',
    waiting: 'waiting for approval',
  },
  'ja-JP': {
    inspector: 'インスペクターを表示',
    tab: 'エージェント',
    run: 'を実行',
    waiting: '承認待ち',
  },
} as const

const DEVICES = [
  ['en-US', {}],
  ['ja-JP', PHONE],
] as const

longTest.each(DEVICES)(
  '[SD1306] [SD1307] a tool is run from its form, and the graph shows that it waits, in %s',
  async (locale, device) => {
    const texts = TOOL_TEXTS[locale]
    const calls: unknown[] = []
    await using studio = await openTestStudio({
      agents: (model) => createPayrollAgent(calls, model),
      bridge: { approvals: { process_payment: true } },
      info: () => ({ agents: [PAYROLL] }),
    })
    const page = await studio.openPage({ locale, ...device })
    const openTab = async () => {
      await page.getByRole('button', { name: texts.inspector }).click()
      await page.getByRole('tab', { name: texts.tab }).click()
    }
    await page.getByText(PAYROLL.description).waitFor()
    await openTab()
    const panel = page.getByRole('tabpanel')
    await panel.locator('summary', { hasText: 'process_payment' }).click()
    await panel.getByLabel('amount').fill('30')
    await panel.getByLabel('tags').fill('[1')
    await panel.getByLabel('recipient').fill('Alice')
    const run = panel.getByRole('button', { name: texts.run })
    await run.click()
    // The browser refuses to send what is not JSON.
    expect(await panel.locator('textarea:invalid').count()).toBe(1)
    await panel.getByLabel('tags').fill('')
    await takeScreenshot(page, `studio-tool-form-${locale}`)
    expect(await findViolations(page, PANEL)).toEqual([])
    await run.click()
    const { tool } = chatPage(page)
    await tool('process_payment').getByText('Alice').waitFor()
    expect(calls).toEqual([])
    if ('isMobile' in device) await openTab()
    const node = panel.locator('.agent-node', { hasText: 'process_payment' })
    await node.getByText(texts.waiting).waitFor()
    await takeScreenshot(page, `studio-graph-${locale}`)
    expect(await findViolations(page, PANEL)).toEqual([])
  },
)
