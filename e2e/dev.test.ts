import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'

import type { Page } from 'playwright-core'
import { afterAll, expect } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { Command, STUDIO_PROGRAM } from '../test/pack/support/command.ts'
import { installProject, packAll } from '../test/pack/support/project.ts'
import { findViolations } from './support/axe-violations.ts'
import { TestContexts } from './support/browser-contexts.ts'
import { chatPage } from './support/chat-page.ts'
import { takeScreenshot } from './support/screenshot.ts'

// Outside of the workspace, so that only installed packages are found.
const folder = mkdtempSync(path.join(tmpdir(), 'dev-page-'))
const project = path.join(folder, 'project')

afterAll(() => {
  Command.killAll()
  rmSync(folder, { recursive: true })
})

/** The agents of a developer. The result of a payment has the version of the code. */
const payroll = (version: number) => `
import { FunctionTool, LlmAgent } from '@google/adk'
import { z } from 'zod'
const pay = new FunctionTool({
  name: 'process_payment',
  description: 'Files a payment slip. No money is sent.',
  parameters: z.object({ amount: z.number(), recipient: z.string(), tags: z.array(z.string()).optional() }),
  execute: () => ({ version: ${version} }),
})
const fileSlip = new FunctionTool({
  name: 'file_slip',
  description: 'Stores a text.',
  parameters: z.object({ name: z.string(), text: z.string() }),
  execute: async ({ name, text }, context) => {
    await context.saveArtifact(name, { text })
    return { stored: true }
  },
})
export const rootAgent = new LlmAgent({
  name: 'payroll',
  model: 'gemini-2.5-flash',
  description: 'Prepares the payroll of the month.',
  outputKey: 'last_reply',
  instruction: 'Be brief.\\nLast reply: {last_reply?}',
  tools: [pay, fileSlip],
})
`

const FILES = {
  'payroll/agent.mjs': payroll(1),
  'support/agent.mjs': `
import { LlmAgent } from '@google/adk'
export const rootAgent = new LlmAgent({ name: 'support', model: 'gemini-2.5-flash', description: 'Helps with problems.' })
`,
  'approvals.mjs': `export const approvals = { process_payment: { deciders: { roles: ['manager'] } } }`,
  '.env': 'MODEL_PRICES=gemini-2.5-flash=1000/1000',
}

function write(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(project, name)), { recursive: true })
    writeFileSync(path.join(project, name), text)
  }
}

/** The panel of the inspector. */
const PANEL = '[role=tabpanel]'

longTest(
  '[SD1304] [SD1305] [SD1306] [SD1307] [SD1308] [SD1311] [DV1322] a developer tries, changes and inspects two agents in the page of dev',
  async () => {
    await installProject(project, await packAll(folder))
    write(FILES)
    const people = ['--as', 'alice', '--as', 'bob:manager']
    const dev = new Command(
      project,
      ['payroll', 'support', '--port', '0', '--policy', 'approvals.mjs', ...people],
      [process.execPath, path.join(project, 'node_modules', STUDIO_PROGRAM)],
    )
    const [, url = ''] = await dev.until(/Page +(http:\S+)/)
    const contexts = new TestContexts()
    try {
      const page = await contexts.openPage(url)
      await page.goto(url)
      await chooseAgent(page)
      await runTool(page)
      await breakAndMend(page, dev)
      await decideAsManager(page)
      const saved = await inspectSession(page)
      await editState(page)
      await readArtifacts(page)
      await importSessions(page, saved)
    } finally {
      const errors = await contexts.close()
      // A request may fail while a version takes over.
      expect(errors).toEqual([])
    }
    dev.stop()
    expect(await dev.exited).toBe(0)
  },
)

async function chooseAgent(page: Page): Promise<void> {
  const { send, waitUntilIdle } = chatPage(page)
  await page.getByText('Prepares the payroll of the month.').waitFor()
  await page.getByLabel('Agent of this chat').selectOption('support')
  await page.getByText('Helps with problems.').waitFor()
  await takeScreenshot(page, 'studio-agent-picker')
  expect(await findViolations(page)).toEqual([])
  await send('[[say One.]]')
  await page.getByText('One.', { exact: true }).waitFor()
  await waitUntilIdle()
  // A reload does not name the agent again.
  await page.reload()
  await send('[[say Two.]]')
  await page.getByText('Two.', { exact: true }).waitFor()
  await waitUntilIdle()
  await openTab(page, 'Session')
  await page.getByRole('tabpanel').locator('summary', { hasText: 'support' }).first().waitFor()
  await page.keyboard.press('Alt+KeyN')
}

async function openTab(page: Page, name: string): Promise<void> {
  const show = page.getByRole('button', { name: 'Show inspector' })
  if (await show.isVisible()) await show.click()
  await page.getByRole('tab', { name }).click()
}

/** Runs a tool from its form. The graph then shows that it waits. */
async function runTool(page: Page): Promise<void> {
  await openTab(page, 'Agent')
  const panel = page.getByRole('tabpanel')
  await panel.locator('summary', { hasText: 'process_payment' }).click()
  const field = (name: string) => panel.getByLabel(name)
  await field('amount').fill('30')
  await field('tags').fill('[1')
  await field('recipient').fill('Alice')
  const run = panel.getByRole('button', { name: 'Run process_payment' })
  await run.click()
  // The browser refuses to send what is not JSON.
  expect(await panel.locator('textarea:invalid').count()).toBe(1)
  await field('tags').fill('')
  await takeScreenshot(page, 'studio-tool-form')
  expect(await findViolations(page, PANEL)).toEqual([])
  await run.click()
  await chatPage(page).tool('process_payment').getByText('Alice').first().waitFor()
  const node = panel.locator('.agent-node', { hasText: 'process_payment' })
  await node.getByText('waiting for approval').waitFor()
  await takeScreenshot(page, 'studio-graph')
  expect(await findViolations(page, PANEL)).toEqual([])
}

/** Saves a broken file and a mended one, while an approval waits. */
async function breakAndMend(page: Page, dev: Command): Promise<void> {
  const card = chatPage(page).tool('process_payment')
  const banner = page.getByRole('alert')
  write({ 'payroll/agent.mjs': 'const tools = [\n  refund,\n]\n' })
  await banner.getByText('refund is not defined').waitFor()
  expect(await banner.innerText()).toMatch(/payroll.agent\.mjs:2:3[^]*> 2 \| {3}refund/)
  await takeScreenshot(page, 'studio-problem')
  expect(await findViolations(page)).toEqual([])
  await card.getByText('Alice').first().waitFor()
  write({ 'payroll/agent.mjs': payroll(2) })
  await dev.until(/✔ reloaded/)
  await banner.getByText('agent.mjs').waitFor({ state: 'detached' })
  await page.reload()
  await card.getByText('Alice').first().waitFor()
}

/** Decides as another person. The call runs with the new code. */
async function decideAsManager(page: Page): Promise<void> {
  const chat = page.url()
  const settings = page.getByRole('button', { name: 'Settings' })
  await settings.click()
  const choice = page.getByLabel('Person')
  expect(await choice.inputValue()).toBe('alice')
  await takeScreenshot(page, 'studio-people')
  expect(await findViolations(page)).toEqual([])
  await choice.selectOption('bob (manager)')
  // Bob has no chats, and one approval.
  await page.getByText('Your chats appear here.').waitFor()
  await page.getByRole('button', { name: 'Approvals: 1 pending' }).click()
  await page.locator('#inbox').getByRole('button', { name: 'Approve' }).click()
  await page.getByRole('button', { name: 'Approvals: 0 pending' }).waitFor()
  await settings.click()
  await choice.selectOption('alice')
  await page.getByText('Your chats appear here.').waitFor({ state: 'detached' })
  await page.goto(chat)
  await chatPage(page).log.getByText('{"version":2}').first().waitFor()
}

/** Reads the tokens, the state, the events and two instructions of a new chat. Returns the path of its file. */
async function inspectSession(page: Page): Promise<string> {
  const { send, waitUntilIdle } = chatPage(page)
  await page.keyboard.press('Alt+KeyN')
  await openTab(page, 'Session')
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
  expect(JSON.parse(readFileSync(saved, 'utf8'))).toMatchObject({
    agent: 'payroll',
    state: { last_reply: 'All slips are filed.' },
    events: [{ author: 'user' }, { author: 'payroll' }],
  })
  await send('[[say All slips are paid.]]')
  await waitUntilIdle()
  await panel.getByText('Compare two instructions').click()
  await panel.locator('ins').getByText('Last reply: All slips are filed.').waitFor()
  expect(await panel.locator('.adk-diff span').getByText('Be brief.').count()).toBe(1)
  await panel.getByLabel('After').selectOption({ index: 0 })
  await panel.getByText('Both instructions are the same.').waitFor()
  return saved
}

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
