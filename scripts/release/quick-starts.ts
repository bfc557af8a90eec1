/** Follows the quick starts with packed packages, from an empty folder to a click in a browser: `npm run test:quick-starts`. */
import assert from 'node:assert/strict'

import { launchChromium } from '../../e2e/support/launch-chromium.ts'
import { blocksOf, commandsOf, findFreePort, Project, replacePorts, tell } from './project.ts'

const browser = await launchChromium()
try {
  for (const name of ['node', 'hono', 'express']) await follow(name)
} finally {
  await browser.close()
}

async function follow(name: string): Promise<void> {
  const blocks = blocksOf(`start/${name}`)
  // Other processes may have the ports that the page names.
  const ports = { 8000: await findFreePort(), 8790: await findFreePort() }
  await using project = await Project.open(name)
  await project.run(commandsOf(blocks, 0))
  project.write(blocks, ports)
  const [emulator = '', server = '', vite = ''] = replacePorts(commandsOf(blocks, 1), ports)
    .trim()
    .split('\n')
  await project.start(emulator).prints(/http:/)
  const bridge = project.start(server)
  await bridge.prints(/Listening on/)
  const [, url = ''] = await project.start(vite).prints(/Local:\s+(http:\S+)/)
  const page = await browser.newPage()
  page.setDefaultTimeout(60_000)
  await page.goto(url)
  await page.getByLabel('Message').fill('Send $30 to Alice')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByText('I sent $30 to Alice.').waitFor()
  await page.close()
  assert.doesNotMatch(bridge.printed(), /warn|error/i)
  tell(`${name}: a payment was asked about and paid at a click`)
}
