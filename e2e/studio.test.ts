import { readFile } from 'node:fs/promises'

import { type BaseLlm, FunctionTool, InMemoryArtifactService, LlmAgent } from '@google/adk'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { isLong } from '../test/support/long-run.ts'
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
  '[SD1303] a foreign tool has its own words, also if the demo has one of the same name, in %s',
  async (locale, approve, words) => {
    const calls: unknown[] = []
    await using studio = await openTestStudio({
      agents: (model) => createPayrollAgent(calls, model),
      bridge: { approvals: { process_payment: true } },
    })
    const page = await studio.openPage({ locale })
    const { send, tool } = chatPage(page)
    await send(CALL)
    const card = tool('process_payment')
    const button = card.getByRole('button', { name: approve, exact: true })
    await button.waitFor()
    expect(await card.innerText()).not.toMatch(words)
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

test.each(isLong ? DEVICES : DEVICES.slice(0, 1))(
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

test('[SD1305] the messages of a chat go to the agent that was chosen for it', async () => {
  await using studio = await openTestStudio({
    agents: (model) => ({
      sales: new LlmAgent({ name: 'sales', model, instruction: 'You sell.' }),
      support: new LlmAgent({ name: 'support', model, instruction: 'You help.' }),
    }),
    info: () => ({
      agents: [
        { name: 'sales', description: 'Sells.' },
        { name: 'support', description: 'Helps with problems.' },
      ],
    }),
  })
  const page = await studio.openPage()
  const { send, waitUntilIdle } = chatPage(page)
  const picker = page.getByLabel('Agent of this chat')
  await picker.selectOption('support')
  await page.getByText('Helps with problems.').waitFor()
  await takeScreenshot(page, 'studio-agent-picker')
  expect(await findViolations(page)).toEqual([])
  await send('[[say One.]]')
  await page.getByText('One.', { exact: true }).waitFor()
  await waitUntilIdle()
  await page.keyboard.press('Alt+KeyN')
  await send('[[say Two.]]')
  await page.getByText('Two.', { exact: true }).waitFor()
  const instructions = studio.emulator.requests.map(({ body }) =>
    /You (?:sell|help)/.exec(JSON.stringify(body))?.at(0),
  )
  expect(instructions).toEqual(['You help', 'You sell'])
  // A reload does not name the agent again.
  await page.reload()
  await send('[[say Three.]]')
  await page.getByText('Three.', { exact: true }).waitFor()
})

test('[SD1304] the page shows why the agent could not be reloaded, until it can be', async () => {
  const problem = {
    message: "Cannot find name 'refnd'.",
    file: 'agent.ts',
    line: 14,
    column: 7,
    codeFrame: '  13 | const tools = [\n> 14 |   refnd,\n     |   ^\n  15 | ]',
  }
  let isBroken = false
  await using studio = await openTestStudio({
    agents: (model) => new LlmAgent({ name: 'payroll', model }),
    info: () => ({
      title: isBroken ? 'payroll' : 'payroll 2',
      reloads: true,
      ...(isBroken && { problem }),
    }),
  })
  const page = await studio.openPage()
  const banner = page.getByRole('alert')
  await page.getByText('payroll 2').waitFor()
  isBroken = true
  await banner.getByText("Cannot find name 'refnd'.").waitFor()
  expect(await banner.innerText()).toMatch(/agent\.ts:14:7[^]*> 14 \| {3}refnd/)
  await takeScreenshot(page, 'studio-problem')
  expect(await findViolations(page)).toEqual([])
  isBroken = false
  await page.getByText('payroll 2').waitFor()
  await banner.getByText('agent.ts').waitFor({ state: 'detached' })
})

test('[SD1308] the page is that of the chosen person', async () => {
  const people = [
    { id: 'alice', name: 'Alice', roles: [] },
    { id: 'bob', name: 'Bob', roles: ['manager'] },
  ]
  const findPerson = (cookie: string | null) =>
    people.find(({ id }) => cookie?.includes(`adk_studio_person=${id}`)) ?? people[0]
  await using studio = await openTestStudio({
    agents: (model) => createPayrollAgent([], model),
    authenticate: ({ headers }) => {
      const person = findPerson(headers.get('cookie'))
      return person && { id: person.id, roles: person.roles }
    },
    bridge: {
      approvals: { process_payment: { deciders: { roles: ['manager'] } } },
    },
    info: (id) => ({ people, person: people.find((person) => person.id === id) }),
  })
  const page = await studio.openPage()
  const { send, tool } = chatPage(page)
  await send(CALL)
  await tool('process_payment').getByText('Alice').waitFor()
  await page.getByRole('button', { name: 'Settings' }).click()
  const choice = page.getByLabel('Person')
  expect(await choice.inputValue()).toBe('alice')
  await takeScreenshot(page, 'studio-people')
  expect(await findViolations(page)).toEqual([])
  await choice.selectOption('Bob (manager)')
  // Bob has no chats, and one approval.
  await page.getByText('Your chats appear here.').waitFor()
  await page.getByRole('button', { name: 'Approvals: 1 pending' }).click()
  await page.locator('#inbox').getByRole('button', { name: 'Approve' }).waitFor()
})

/** Changes a key of the state with the keyboard, and adds one. */
async function editState(page: Page): Promise<void> {
  const panel = page.getByRole('tabpanel')
  const { send, waitUntilIdle } = chatPage(page)
  await panel.locator('summary', { hasText: 'last_reply' }).press('Enter')
  const value = panel.getByLabel('Value of last_reply (JSON)')
  await value.fill('"edited')
  await panel.getByRole('button', { name: 'Save', exact: true }).press('Enter')
  expect(await value.evaluate((field) => field.matches(':invalid'))).toBe(true)
  await value.fill('"edited"')
  await panel.getByRole('button', { name: 'Save', exact: true }).press('Enter')
  await panel.getByText('last_reply is saved.').waitFor()
  await panel.locator('summary', { hasText: 'Add a key' }).press('Enter')
  await panel.getByLabel('Key').fill('seats')
  await panel.getByLabel('Value (JSON)').fill('{"row": 4}')
  await takeScreenshot(page, 'studio-state')
  expect(await findViolations(page, PANEL)).toEqual([])
  await panel.getByLabel('Value (JSON)').press('Tab')
  await page.keyboard.press('Enter')
  await panel.getByText('seats is saved.').waitFor()
  await panel.locator('summary', { hasText: 'seats' }).waitFor()
  await send('[[say Read.]]')
  await waitUntilIdle()
}

const file = (name: string, text: string) => `[[call file_slip ${JSON.stringify({ name, text })}]]`

/** Reads the versions of artifacts with hostile names and contents. */
async function readArtifacts(page: Page): Promise<void> {
  const panel = page.getByRole('tabpanel')
  const { send, waitUntilIdle } = chatPage(page)
  await panel.getByText('The agent has saved no files.').waitFor()
  const hostile = '<img src=x onerror=alert(1)>/../slip.html'
  await send(`${file('slip.json', '{"a":1}')}${file(hostile, '<script>alert(1)</script>')}`)
  await waitUntilIdle()
  await send(file('slip.json', '{"a":2}'))
  await waitUntilIdle()
  const slip = panel.locator('.session-artifacts details', { hasText: 'slip.json' })
  await slip.locator('summary', { hasText: '2 versions' }).click()
  await slip.getByText('"a": 2').waitFor()
  await slip.getByLabel('Version').selectOption('0')
  await slip.getByText('"a": 1').waitFor()
  const page2 = panel.locator('.session-artifacts details', { hasText: hostile })
  await page2.locator('summary').click()
  await page2.getByText('<script>alert(1)</script>').waitFor()
  expect(await findViolations(page, PANEL)).toEqual([])
  const saving = page.waitForEvent('download')
  await page2.getByRole('link', { name: 'Download' }).click()
  const download = await saving
  expect(download.suggestedFilename()).not.toMatch(/[/\\]/)
  expect(await readFile(await download.path(), 'utf8')).toBe('<script>alert(1)</script>')
}

/** Imports a file that is no session, and one that is. */
async function importSessions(page: Page, saved: string): Promise<void> {
  const panel = page.getByRole('tabpanel')
  const { log, send } = chatPage(page)
  const input = panel.getByLabel('Import a session file')
  const broken = { name: 'a.json', mimeType: 'application/json', buffer: Buffer.from('{"a":1}') }
  await input.setInputFiles(broken)
  await panel.getByRole('alert').getByText('This is not the file of an ADK session.').waitFor()
  const before = page.url()
  await input.setInputFiles(saved)
  await page.waitForURL((url) => url.href !== before)
  await log.getByText('All slips are filed.', { exact: true }).waitFor()
  expect(await log.getByText('Read.', { exact: true }).count()).toBe(0)
  await panel.getByText('Event 0 of 2').waitFor()
  await send('[[say Going on.]]')
  await log.getByText('Going on.', { exact: true }).waitFor()
}

test('[SD1311] the inspector shows the session of a chat, changes its state, reads its artifacts, and saves and imports sessions', async () => {
  await using studio = await openTestStudio({
    agents: (model) =>
      new LlmAgent({
        name: 'payroll',
        model,
        outputKey: 'last_reply',
        instruction: 'Be brief.\nLast reply: {last_reply?}',
        tools: [
          new FunctionTool({
            name: 'file_slip',
            description: 'Files a slip.',
            parameters: z.object({ name: z.string(), text: z.string() }),
            execute: async ({ name, text }, context) => {
              await context?.saveArtifact(name, { text })
              return { filed: true }
            },
          }),
        ],
      }),
    bridge: {
      recordModelCalls: 'with-authentication',
      artifactService: new InMemoryArtifactService(),
    },
    info: () => ({ prices: { 'gemini-2.5-flash': { input: 1000, output: 1000 } } }),
  })
  const page = await studio.openPage()
  const { send, waitUntilIdle } = chatPage(page)
  await page.getByRole('button', { name: 'Show inspector' }).click()
  await page.getByRole('tab', { name: 'Session' }).click()
  const panel = page.getByRole('tabpanel')
  await panel.getByText('The session starts with the first message.').waitFor()
  await send('[[say All slips are filed.]]')
  await waitUntilIdle()
  await panel.locator('summary', { hasText: 'last_reply "All slips are filed."' }).waitFor()
  // The emulator does not name its model, so the cost is that of the agent's model.
  await panel
    .getByText(/^[1-9]\d* tokens in, [1-9]\d* out, in the whole chat ≈ \$0\.\d+$/)
    .waitFor()
  await panel.getByRole('button', { name: 'Next event' }).click()
  await panel.getByText('Event 1 of 2').waitFor()
  await panel.locator('details[open]').getByText('"author": "user"').waitFor()
  await page.keyboard.press('Enter')
  await panel.getByText('Event 2 of 2').waitFor()
  await panel.locator('details[open]').getByText('"author": "payroll"').waitFor()
  expect(await panel.locator('details[open]').count()).toBe(1)
  await takeScreenshot(page, 'studio-session')
  expect(await findViolations(page, PANEL)).toEqual([])
  const saving = page.waitForEvent('download')
  await panel.getByRole('button', { name: 'Save the session as a file' }).click()
  const saved = await (await saving).path()
  expect(JSON.parse(await readFile(saved, 'utf8'))).toMatchObject({
    state: { last_reply: 'All slips are filed.' },
    events: [{ author: 'user' }, { author: 'payroll' }],
  })

  await send('[[say All slips are paid.]]')
  await waitUntilIdle()
  await panel.getByText('Compare two instructions').click()
  await panel.locator('ins').getByText('Last reply: All slips are filed.').waitFor()
  expect(await panel.locator('.adk-diff span').getByText('Be brief.').count()).toBe(1)
  expect(await findViolations(page)).toEqual([])
  await panel.getByLabel('After').selectOption({ index: 0 })
  await panel.getByText('Both instructions are the same.').waitFor()

  await editState(page)
  await readArtifacts(page)
  await importSessions(page, saved)
})
