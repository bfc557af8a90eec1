/** Uses the pages of the recipe on AG-UI in Chromium, with the packages of CopilotKit and assistant-ui: `npm run test:ag-ui-pages`. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'

import type { AuthConfig, BaseTool } from '@google/adk'
import { FunctionTool, requestInputTool } from '@google/adk'
import { browserTool } from 'adk-stream-protocol/server'
import { startEmulator } from 'gemini-emulator'
import type { BrowserContext, Page } from 'playwright-core'
import { build } from 'vite'
import { z } from 'zod'

import { launchChromium } from '../../e2e/support/launch-chromium.ts'
import { serveWithBridge } from '../../e2e/support/serve-with-bridge.ts'
import { listen } from '../../test/support/listen.ts'
import { temporaryDirectory } from '../../test/support/temporary-directory.ts'
import { blocksOf, report } from './project.ts'

/** `react-ag-ui` depends on packages that each release of assistant-ui has in one version only. */
const PACKAGES = [
  '@copilotkit/react-core@1.74.0',
  '@assistant-ui/react@0.15.21',
  '@assistant-ui/react-ag-ui@0.0.57',
  'react@19',
  'react-dom@19',
]

/** Chooses a page by `?page=`. The tools of the page count their calls in `window.ran`. */
const MAIN = `
import { makeAssistantTool } from '@assistant-ui/react'
import { CopilotChat, CopilotKitProvider, useFrontendTool } from '@copilotkit/react-core/v2'
import '@copilotkit/react-core/v2/styles.css'
import { createRoot } from 'react-dom/client'
import { z } from 'zod'
import { Assistant } from './assistant-ui.jsx'
import { App, Approvals } from './copilotkit.jsx'

window.ran = []
const query = new URLSearchParams(location.search)
const play = async ({ track }) => (window.ran.push('play ' + track), { playing: track })
const locate = async () => (window.ran.push('locate'), { latitude: 35 })

function PageTools() {
  useFrontendTool({ name: 'play', parameters: z.object({ track: z.number() }), handler: play })
  useFrontendTool({ name: 'locate', parameters: z.object({}), handler: locate })
  return null
}

const Cards = () => (
  <CopilotKitProvider runtimeUrl="/adk/ag-ui/cards" enableInspector={false}>
    <CopilotChat threadId={query.get('thread')} />
  </CopilotKitProvider>
)
const WithTools = () => (
  <CopilotKitProvider runtimeUrl="/adk/ag-ui" enableInspector={false}>
    <Approvals />
    <PageTools />
    <CopilotChat threadId={query.get('thread')} />
  </CopilotKitProvider>
)
const Play = makeAssistantTool({ toolName: 'play', type: 'frontend', parameters: z.object({ track: z.number() }), execute: play })
const Locate = makeAssistantTool({ toolName: 'locate', type: 'frontend', parameters: z.object({}), execute: locate })
const AssistantWithTools = () => (
  <Assistant>
    <Play />
    <Locate />
  </Assistant>
)
const pages = {
  copilotkit: App,
  cards: Cards,
  tools: WithTools,
  'assistant-ui': Assistant,
  'assistant-ui-tools': AssistantWithTools,
}
const Chosen = pages[query.get('page')]
createRoot(document.getElementById('root')).render(<Chosen />)
`

const INDEX = `<!doctype html><html lang="en"><head><title>AG-UI</title></head>
<body><div id="root" style="height: 100vh"></div><script type="module" src="./main.jsx"></script></body></html>`

await using directory = await temporaryDirectory()
await buildPages(directory.path)

const MAPS: AuthConfig = {
  credentialKey: 'maps',
  authScheme: { type: 'apiKey', in: 'header', name: 'x-key' },
}
const paid: string[] = []
const TOOLS: BaseTool[] = [
  new FunctionTool({
    name: 'process_payment',
    description: 'Sends money to somebody.',
    parameters: z.object({ amount: z.number(), recipient: z.string() }),
    requireConfirmation: true,
    execute: ({ amount, recipient }) => ({ success: paid.push(`${amount} to ${recipient}`) > 0 }),
  }),
  requestInputTool,
  browserTool({
    name: 'play',
    description: 'Plays a track.',
    parameters: z.object({ track: z.number() }),
  }),
  browserTool({
    name: 'locate',
    description: 'Where the person is.',
    parameters: z.object({}),
    requireConfirmation: true,
  }),
  new FunctionTool({
    name: 'find_way',
    description: 'Finds the way.',
    execute: (_args, context) => {
      const key = context?.getAuthResponse(MAPS)?.apiKey
      if (key === undefined) context?.requestCredential(MAPS)
      return { way: key === 'the key' ? 'Left.' : 'None.' }
    },
  }),
]
const pay = (amount: number, recipient: string): string =>
  `[[call process_payment {"amount":${amount},"recipient":"${recipient}"}]]`

await using emulator = await startEmulator()
const port = await findFreePort()
await using server = await serveWithBridge(emulator, {
  port,
  signIn: {
    baseUrl: `http://localhost:${port}/adk`,
    providers: { maps: { type: 'apiKey', label: 'Maps', help: 'The key is: the key.' } },
  },
  pageDir: directory.file('page'),
  dataDir: directory.path,
  tools: TOOLS,
  basePath: '/adk',
  disconnectGraceMs: 60_000,
})
const browser = await launchChromium()
try {
  // All checks, or those whose names contain the argument.
  const [named = ''] = process.argv.slice(2)
  for (const [name, check] of Object.entries(checks())) {
    if (!name.includes(named)) continue
    paid.length = 0
    const context = await browser.newContext({ viewport: { width: 900, height: 700 } })
    await check(context)
    await context.close()
    report(name)
  }
} finally {
  await browser.close()
}

/** Installs the packages, and builds the code of the recipe. Only the chat and the address of the bridge are replaced. */
async function buildPages(root: string): Promise<void> {
  writeFileSync(path.join(root, 'package.json'), '{ "private": true, "type": "module" }')
  report(`npm install ${PACKAGES.join(' ')}`)
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--legacy-peer-deps']
  execFileSync('npm', ['install', ...options, ...PACKAGES], { cwd: root, stdio: 'ignore' })
  const blocks = blocksOf('recipes/ag-ui').filter(({ language }) => language === 'jsx')
  const [copilotKit = '', assistantUi = ''] = blocks.map(({ text }) =>
    text
      .replaceAll('"chat-1"', "{new URLSearchParams(location.search).get('thread')}")
      .replaceAll("'chat-1'", "new URLSearchParams(location.search).get('thread')")
      .replaceAll('/ag-ui', (match, at: number, all: string) =>
        all[at - 1] === '"' || all[at - 1] === "'" ? `/adk${match}` : match,
      ),
  )
  const pages = path.join(root, 'pages')
  mkdirSync(pages)
  writeFileSync(
    path.join(pages, 'copilotkit.jsx'),
    copilotKit.replace('function Approvals', 'export function Approvals'),
  )
  writeFileSync(path.join(pages, 'assistant-ui.jsx'), assistantUi)
  writeFileSync(path.join(pages, 'main.jsx'), MAIN)
  writeFileSync(path.join(pages, 'index.html'), INDEX)
  await build({
    root: pages,
    configFile: false,
    logLevel: 'error',
    build: { outDir: path.join(root, 'page'), chunkSizeWarningLimit: 50_000 },
  })
}

/** A page in a new chat, or in that of another page. */
async function openPage(context: BrowserContext, page: string, thread: string = randomUUID()) {
  const tab = await context.newPage()
  tab.setDefaultTimeout(120_000)
  const errors: string[] = []
  tab.on('pageerror', ({ message }) => errors.push(message))
  await tab.goto(`${server.url.replace('127.0.0.1', 'localhost')}/?page=${page}&thread=${thread}`)
  const box = tab.locator('textarea').first()
  await box.waitFor()
  return {
    tab,
    thread,
    approve: tab.getByRole('button', { name: 'Approve' }),
    deny: tab.getByRole('button', { name: 'Deny' }),
    stop: tab.locator('[data-testid=copilot-send-button], button:text-is("Stop")'),
    ran: () => tab.evaluate(() => (window as unknown as { ran: string[] }).ran),
    say: async (text: string): Promise<void> => {
      await box.fill(text)
      await box.press('Enter')
    },
    /** The text is a reply: the message of the person has it in brackets. */
    sees: (text: string): Promise<void> => tab.getByText(text, { exact: true }).first().waitFor(),
    close: async (): Promise<void> => {
      await tab.close()
      assert.deepEqual(errors, [])
    },
  }
}

type Checks = Readonly<Record<string, (context: BrowserContext) => Promise<void>>>

function checks(): Checks {
  return {
    ...checksOf('copilotkit'),
    ...checksOf('assistant-ui'),
    ...checksOfTools('copilotkit', 'tools'),
    ...checksOfTools('assistant-ui', 'assistant-ui-tools'),
    ...checksOfCards(),
  }
}

/** What both kits do with the code of the recipe. */
function checksOf(kit: string): Checks {
  return {
    [`${kit}: text, and the chat after a reload`]: async (context) => {
      const page = await openPage(context, kit)
      await page.say('[[say Hello there.]]')
      await page.sees('Hello there.')
      await page.close()
      const again = await openPage(context, kit, page.thread)
      await again.sees('Hello there.')
      await again.close()
    },
    [`${kit}: a reload during a run`]: async (context) => {
      const page = await openPage(context, kit)
      const gate = randomUUID()
      await page.say(`[[say First half]][[wait ${gate}]][[say , second half.]]`)
      await page.sees('First half')
      await page.close()
      const again = await openPage(context, kit, page.thread)
      if (kit === 'copilotkit') await again.sees('First half')
      emulator.release(gate)
      await again.sees('First half, second half.')
      await again.close()
    },
    [`${kit}: stop`]: async (context) => {
      const page = await openPage(context, kit)
      await page.say(`[[say Begun]][[wait ${randomUUID()}]][[say , never ended.]]`)
      await page.sees('Begun')
      await page.stop.click()
      await page.say('[[say Next.]]')
      await page.sees('Next.')
      await page.close()
    },
    [`${kit}: two approvals, one denied`]: async (context) => {
      const page = await openPage(context, kit)
      await page.say(`${pay(30, 'Alice')}${pay(40, 'Bob')}[[then]][[say Both handled.]]`)
      await page.approve.nth(1).waitFor()
      assert.deepEqual(paid, [])
      await page.approve.first().click()
      await page.deny.last().click()
      await page.sees('Both handled.')
      assert.deepEqual(paid, ['30 to Alice'])
      await page.say('[[say Next.]]')
      await page.sees('Next.')
      await page.close()
    },
    [`${kit}: an approval after a reload`]: async (context) => {
      const page = await openPage(context, kit)
      await page.say(`${pay(60, 'Carol')}[[then]][[say Paid sixty.]]`)
      await page.approve.waitFor()
      await page.close()
      const again = await openPage(context, kit, page.thread)
      await again.approve.click()
      await again.sees('Paid sixty.')
      assert.deepEqual(paid, ['60 to Carol'])
      await again.close()
    },
    [`${kit}: the next message after an error of the model`]: async (context) => {
      const page = await openPage(context, kit)
      await page.say(`${pay(62, 'Dan')}[[then]][[fail 400 no]]`)
      await page.approve.click()
      await page.approve.waitFor({ state: 'detached' })
      await page.say('[[say Still here.]]')
      await page.sees('Still here.')
      assert.deepEqual(paid, ['62 to Dan'])
      await page.close()
    },
    [`${kit}: another person with the id of the chat sees nothing`]: async (context) => {
      const page = await openPage(context, kit)
      await page.say('[[say A secret.]]')
      await page.sees('A secret.')
      const stranger = await openPage(await browser.newContext(), kit, page.thread)
      await stranger.say('[[say Mine.]]')
      await page.say('[[say More.]]')
      await page.sees('More.')
      assert.equal(await stranger.tab.getByText('A secret.').count(), 0)
      await stranger.tab.context().close()
      await page.close()
    },
  }
}

function checksOfTools(kit: string, tools: string): Checks {
  return {
    [`${kit}: a tool of the page`]: async (context) => {
      const page = await openPage(context, tools)
      await page.say('[[call play {"track":2}]][[then]][[say Enjoy.]]')
      await page.sees('Enjoy.')
      assert.deepEqual(await page.ran(), ['play 2'])
      await page.close()
    },
    [`${kit}: a tool of the page that needs approval runs after it only`]: async (context) => {
      const page = await openPage(context, tools)
      await page.say('[[call locate {}]][[then]][[say You are here.]]')
      await page.approve.waitFor()
      assert.deepEqual(await page.ran(), [])
      await page.approve.click()
      await page.sees('You are here.')
      assert.deepEqual(await page.ran(), ['locate'])
      await page.close()
    },
    [`${kit}: an approval beside a tool of the page`]: async (context) => {
      const page = await openPage(context, tools)
      await page.say(`${pay(61, 'Eve')}[[call play {"track":3}]][[then]][[say Paid and playing.]]`)
      await page.approve.click()
      await page.sees('Paid and playing.')
      assert.deepEqual(await page.ran(), ['play 3'])
      assert.deepEqual(paid, ['61 to Eve'])
      await page.close()
    },
  }
}

/** CopilotKit without code for approvals. */
function checksOfCards(): Checks {
  return {
    'cards: two approvals, one after a reload': async (context) => {
      const page = await openPage(context, 'cards')
      await page.say(`${pay(30, 'Alice')}${pay(40, 'Bob')}[[then]][[say Both handled.]]`)
      await page.approve.nth(1).waitFor()
      await screenshot(page.tab, 'cards')
      await page.approve.first().click()
      await page.approve.nth(1).waitFor({ state: 'detached' })
      await page.say('[[say Meanwhile.]]')
      await page.sees('Meanwhile.')
      await page.close()
      const again = await openPage(context, 'cards', page.thread)
      await again.deny.click()
      await again.sees('Both handled.')
      assert.deepEqual(paid.length, 1)
      assert.equal(await again.approve.count(), 0)
      await again.close()
    },
    'cards: a question is a form': async (context) => {
      const page = await openPage(context, 'cards')
      const schema =
        '{"type":"object","properties":{"nights":{"type":"integer"}},"required":["nights"]}'
      await page.say(
        `[[call adk_request_input {"message":"How many nights?","response_schema":${schema}}]][[then]][[say Booked.]]`,
      )
      const nights = page.tab.locator('input[type=number], input[type=text]').first()
      await nights.fill('2')
      const send = page.tab.getByRole('button', { name: 'Send', exact: true }).last()
      await send.waitFor()
      await screenshot(page.tab, 'form')
      await send.click()
      await page.sees('Booked.')
      await page.close()
    },
    'cards: a sign-in': async (context) => {
      const page = await openPage(context, 'cards')
      await page.say('[[call find_way {}]][[then]][[say Found it.]]')
      const opened = context.waitForEvent('page')
      const open = page.tab.getByRole('button', { name: `Open localhost:${port}` })
      await open.waitFor()
      await screenshot(page.tab, 'sign-in-card')
      await open.click()
      const form = await opened
      await form.getByLabel('Maps: API key').fill('the key')
      await screenshot(form, 'sign-in')
      await Promise.all([form.waitForEvent('close'), form.getByRole('button').click()])
      await page.tab.getByRole('button', { name: 'Continue' }).click()
      await page.sees('Found it.')
      await screenshot(page.tab, 'signed-in')
      await page.close()
    },
  }
}

async function findFreePort(): Promise<number> {
  const probe = createServer()
  const found = await listen(probe)
  probe.close()
  return found
}

/** Writes a picture if `SCREENSHOTS` names a folder. */
async function screenshot(tab: Page, name: string): Promise<void> {
  const folder = process.env['SCREENSHOTS']
  if (folder !== undefined) await tab.screenshot({ path: path.join(folder, `${name}.png`) })
}
