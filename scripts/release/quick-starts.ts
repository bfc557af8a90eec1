/** Creates a project from each template with the packed packages, tests it, and clicks in its page: `npm run test:quick-starts`. */
import assert from 'node:assert/strict'

import { launchChromium } from '../../e2e/support/launch-chromium.ts'
import { readTemplate, TEMPLATES } from '../../packages/create-adk-stream-protocol/src/templates.ts'
import { blocksOf, commandsOf, findFreePort, Project, report } from './project.ts'

const browser = await launchChromium()
try {
  // All templates, or those that the command names.
  const named = process.argv.slice(2)
  for (const template of named.length > 0 ? named : Object.keys(TEMPLATES)) await follow(template)
} finally {
  await browser.close()
}

async function follow(template: string): Promise<void> {
  const [create = '', ...rest] = commandsOf(blocksOf(`start/${template}`), 0)
    .trim()
    .split('\n')
  assert.match(create, /^npm create adk-stream-protocol@latest chat(?: -- --template \w+)?$/)
  assert.deepEqual(rest, ['cd chat', 'npm install', 'npm run dev'])
  await using project = await Project.open(template)
  await project.create(template, 'chat')
  // Other processes may use the ports of the project.
  const port = await findFreePort()
  const files = readTemplate(template, 'chat')
  project.write(
    files.filter(({ file }) => file === 'server.ts' || file === 'vite.config.ts'),
    { 8000: port },
  )
  for (const script of ['typecheck', 'check', 'test', 'build'])
    await project.run(`npm run ${script}`)
  report(`${template}: types, check, test and build pass`)
  const own = template === 'next' ? `-- -p ${await findFreePort()}` : ''
  const server = project.start(`npm run dev ${own}`, { GOOGLE_API_KEY: '' })
  const [, url = ''] = await server.prints(/Local:\s+(http:\S+)/)
  await pay(url).catch((cause: unknown) => {
    throw new Error(`The payment was not made:\n${server.printed()}`, { cause })
  })
  assert.match(server.printed(), /The emulator replies/)
  assert.doesNotMatch(server.printed(), /WARN|ERROR|experimental/)
  report(`${template}: a payment is requested, and made after a click`)
}

async function pay(url: string): Promise<void> {
  const tab = await browser.newPage()
  tab.setDefaultTimeout(120_000)
  await tab.goto(url)
  await tab.getByLabel('Message').fill('Send $30 to Alice')
  await tab.keyboard.press('Enter')
  await tab.getByRole('button', { name: 'Approve' }).click()
  await tab.getByText('I sent $30 to Alice.', { exact: true }).waitFor()
  await tab.close()
}
