/** Follows the pages about Next.js with the real Next.js and packed packages: `npm run test:next`. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import type { Page } from 'playwright-core'

import { launchChromium } from '../../e2e/support/launch-chromium.ts'
import { readTemplate } from '../../packages/create-adk-stream-protocol/src/templates.ts'
import { emulateProject } from '../../test/docs/support/emulate-project.ts'
import { callsOf, payOnce } from '../../test/docs/support/pay-once.ts'
import { blocksOf, commandsOf, findFreePort, Project, report } from './project.ts'

const recipe = blocksOf('recipes/next-server')

await using project = await Project.open('next')
await using emulator = await emulateProject(readTemplate('next', 'chat'))
const env = { GOOGLE_GEMINI_BASE_URL: emulator.baseUrl, GOOGLE_API_KEY: 'any' }
const browser = await launchChromium()
try {
  await project.create('next', 'chat')
  const { version } = JSON.parse(read('node_modules/ai/package.json')) as { version: string }
  report(`Next.js ${nextVersion()}, AI SDK ${version}`)

  await project.run('npx next build', env)
  assert(!existsSync(path.join(project.folder, 'chats.db')), 'next build opened the database')
  report('next build: no database')
  await testProduction()
  await testDevelopment()
  await testCustomServer()
} finally {
  await browser.close()
}

async function testProduction(): Promise<void> {
  const port = await findFreePort()
  await using server = project.start(`npx next start -p ${port}`, env)
  await server.prints(/Ready/)
  await payInBrowser(`http://localhost:${port}`)
  assert.doesNotMatch(server.printed(), /Error/)
  report('next start: a payment is requested, and made after a click')
}

async function testDevelopment(): Promise<void> {
  const port = await findFreePort()
  await using server = project.start(`npx next dev -p ${port}`, env)
  await server.prints(/Ready/)
  await payInBrowser(`http://localhost:${port}`)
  report('next dev: a payment is requested, and made after a click')
  project.writeFile(
    'agent.ts',
    read('agent.ts').replace('success: true', 'success: true, edited: true'),
  )
  // Next.js watches the files. Only the effect of the change shows that it has been detected.
  for (;;) {
    const [, completed] = await payOnce(`http://localhost:${port}/api/agent`)
    if (JSON.stringify(callsOf(completed)).includes('"edited":true')) break
    await delay(500)
  }
  report('next dev: a changed agent is used')
}

async function testCustomServer(): Promise<void> {
  rmSync(path.join(project.folder, 'app/api'), { recursive: true })
  rmSync(path.join(project.folder, 'bridge.ts'))
  await project.run(commandsOf(recipe, 0))
  const port = await findFreePort()
  project.write(recipe, { 3000: port })
  const url = `http://localhost:${port}`
  {
    await using server = project.start(commandsOf(recipe, 1).trim(), env)
    await server.prints(/Listening on/)
    const page = await open(url)
    const sockets = new Set<string>()
    page.on('websocket', (socket) => {
      sockets.add(socket.url())
      socket.on('close', () => sockets.delete(socket.url()))
    })
    await page.reload()
    await pay(page)
    const paths = [...sockets].map((address) => new URL(address).pathname)
    assert(paths.includes('/api/agent/live'), 'the socket of the bridge is open')
    assert(
      paths.some((each) => each.startsWith('/_next/')),
      'the socket of hot reload is open',
    )
    // Hot reload updates the page without a new page load.
    await page.evaluate(() => document.body.setAttribute('data-loaded', 'once'))
    project.writeFile('app/chat.tsx', read('app/chat.tsx').replace('"Message"', '"Reply"'))
    await page.getByLabel('Reply').waitFor()
    assert.equal(await page.locator('body').getAttribute('data-loaded'), 'once')
    await page.close()
    report('custom server, development: payment over the socket, hot reload')
  }
  await project.run('npx next build', env)
  await using server = project.start('NODE_ENV=production npx tsx server.ts', env)
  await server.prints(/Listening on/)
  const page = await open(url)
  await pay(page, 'Reply')
  await page.close()
  report('custom server, production: payment over the socket')
}

async function payInBrowser(url: string): Promise<void> {
  const page = await open(url)
  await pay(page)
  await page.close()
}

async function open(url: string): Promise<Page> {
  const page = await browser.newPage()
  page.setDefaultTimeout(120_000)
  await page.goto(url)
  return page
}

async function pay(page: Page, label = 'Message'): Promise<void> {
  const field = page.getByLabel(label)
  await field.fill('Send $30 to Alice')
  await field.press('Enter')
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByText('I sent $30 to Alice.', { exact: true }).waitFor()
}

function read(file: string): string {
  return readFileSync(path.join(project.folder, file), 'utf8')
}

function nextVersion(): string {
  return (JSON.parse(read('node_modules/next/package.json')) as { version: string }).version
}
