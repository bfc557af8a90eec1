import { rmSync } from 'node:fs'
import path from 'node:path'

import { createServer } from 'vite'
import { expect } from 'vitest'

import { readTemplate } from '../packages/create-adk-stream-protocol/src/templates.ts'
import { emulateProject } from '../test/docs/support/emulate-project.ts'
import { longTest } from '../test/support/long-test.ts'
import { writeFiles } from '../test/docs/support/examples.ts'
import { runServer } from '../test/docs/support/run-server.ts'
import { launchChromium } from './support/launch-chromium.ts'

// In `npm test`, test/docs compiles the page and runs its server without a browser.
longTest(
  '[DO4] the page of the quick start replies, requests approval, and pays after a click',
  async () => {
    const files = readTemplate('node', 'chat')
    const folder = writeFiles('start-in-browser', files)
    await using emulator = await emulateProject(files)
    await using server = await runServer(folder, emulator.baseUrl)
    const vite = await createServer({
      root: folder,
      cacheDir: path.join(folder, '.vite'),
      logLevel: 'error',
      // The settings of the page with other ports.
      server: { host: '127.0.0.1', port: 0, proxy: { '/adk': { target: server.url, ws: true } } },
    })
    await vite.listen()
    const browser = await launchChromium()
    try {
      const tab = await browser.newPage()
      await tab.goto(vite.resolvedUrls?.local[0] ?? '')
      await tab.getByLabel('Message').fill('Send $30 to Alice')
      await tab.keyboard.press('Enter')
      await tab.getByRole('button', { name: 'Approve' }).click()
      await tab.getByText('I sent $30 to Alice.', { exact: true }).waitFor()
      // The chat is loaded again with the page.
      await tab.reload()
      await tab.getByText('I sent $30 to Alice.', { exact: true }).waitFor()
      expect(await tab.getByRole('button', { name: 'Approve' }).count()).toBe(0)
    } finally {
      await browser.close()
      await vite.close()
    }
    rmSync(folder, { recursive: true })
  },
)
