/** Follows the quick starts with packed packages, from an empty folder to a click in a browser: `npm run test:quick-starts`. */
import assert from 'node:assert/strict'

import { launchChromium } from '../../e2e/support/launch-chromium.ts'
import manifest from '../../package.json' with { type: 'json' }
import { blocksOf, commandsOf, findFreePort, Project, replacePorts, report } from './project.ts'

// The versions that this repository uses.
const { vite, rolldown } = manifest.overrides
const browser = await launchChromium()
try {
  for (const name of ['node', 'hono', 'express']) await follow(name)
} finally {
  await browser.close()
}

async function follow(name: string): Promise<void> {
  const blocks = blocksOf(`start/${name}`)
  // Other processes may use the ports of the page.
  const ports = { 8000: await findFreePort(), 8790: await findFreePort() }
  await using project = await Project.open(name)
  const [init = '', ...install] = commandsOf(blocks, 0).split(/(?=npm install)/)
  await project.run(init)
  // Not the newest Vite, which the page installs: its binaries are not in every registry yet.
  await project.run(`npm pkg set overrides.rolldown=${rolldown}`)
  await project.run(install.join('').replace(' vite ', ` vite@${vite} `))
  project.write(blocks, ports)
  const [emulator = '', server = '', page = ''] = replacePorts(commandsOf(blocks, 1), ports)
    .trim()
    .split('\n')
  await project.start(emulator).prints(/http:/)
  const bridge = project.start(server)
  await bridge.prints(/Listening on/)
  const [, url = ''] = await project.start(page).prints(/Local:\s+(http:\S+)/)
  const tab = await browser.newPage()
  tab.setDefaultTimeout(60_000)
  await tab.goto(url)
  await tab.getByLabel('Message').fill('Send $30 to Alice')
  await tab.keyboard.press('Enter')
  await tab.getByRole('button', { name: 'Approve' }).click()
  await tab.getByText('I sent $30 to Alice.').waitFor()
  await tab.close()
  assert.doesNotMatch(bridge.printed(), /WARN|ERROR|experimental/)
  report(`${name}: a payment is requested, and made after a click`)
}
