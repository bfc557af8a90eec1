import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { FunctionTool } from '@google/adk'
import { startEmulator } from 'gemini-emulator'
import { build } from 'vite'
import { expect } from 'vitest'
import { longTest } from '../test/support/long-test.ts'
import { z } from 'zod'

import { temporaryDirectory } from '../test/support/temporary-directory.ts'
import { writeFiles } from '../test/docs/support/examples.ts'
import { readPages } from '../test/docs/support/pages.ts'
import { launchChromium } from './support/launch-chromium.ts'
import { serveWithBridge } from './support/serve-with-bridge.ts'

const KITS = ['assistant-ui', 'elements'] as const

const MAIN = `
import { createRoot } from 'react-dom/client'
import { Assistant } from './src/assistant-ui.tsx'
import { Elements } from './src/elements.tsx'
const kits = { '#assistant-ui': Assistant, '#elements': Elements }
const Kit = kits[location.hash]
createRoot(document.body.appendChild(document.createElement('div'))).render(<Kit />)
`
const INDEX = `<!doctype html><html lang="en"><head><title>UI kits</title>
<script type="module" src="./main.tsx"></script></head><body></body></html>`

/** Builds the code of the recipe without changes. */
async function buildRecipe(outDir: string): Promise<void> {
  const page = readPages().find(({ path }) => path === 'docs/recipes/custom-ui-kit.md')
  const root = writeFiles('ui-kits', page?.blocks ?? [])
  cpSync(join(import.meta.dirname, 'ui-kits-page'), root, { recursive: true })
  writeFileSync(join(root, 'main.tsx'), MAIN)
  writeFileSync(join(root, 'index.html'), INDEX)
  await build({
    root,
    configFile: false,
    logLevel: 'error',
    resolve: { alias: { '@': root } },
    build: { outDir },
  })
  rmSync(root, { recursive: true })
}

longTest(
  '[DO152] the UI kits of the recipe request approval, run approved calls, and do not run denied ones',
  async () => {
    await using directory = await temporaryDirectory()
    const pageDir = directory.file('page')
    await buildRecipe(pageDir)
    const paid: number[] = []
    const payment = new FunctionTool({
      name: 'process_payment',
      description: 'Sends money to somebody.',
      parameters: z.object({ amount: z.number(), recipient: z.string() }),
      requireConfirmation: true,
      execute: ({ amount }) => ({ success: paid.push(amount) > 0 }),
    })
    await using emulator = await startEmulator()
    await using server = await serveWithBridge(emulator, {
      pageDir,
      dataDir: directory.path,
      tools: [payment],
      basePath: '/adk',
    })
    const browser = await launchChromium()
    try {
      const page = await browser.newPage()
      const errors: string[] = []
      page.on('pageerror', ({ message }) => errors.push(message))
      for (const kit of KITS) {
        paid.length = 0
        await page.goto(`${server.url}/#${kit}`)
        await page.reload()
        const field = page.getByLabel('Message')
        await field.fill(
          '[[call process_payment {"amount":30,"recipient":"Alice"}]][[then]][[say I sent $30 to Alice.]]',
        )
        await field.press('Enter')
        const allow = page.getByRole('button', { name: 'Allow' })
        await allow.waitFor()
        expect(paid).toEqual([])
        await allow.click()
        await page.getByText('I sent $30 to Alice.', { exact: true }).waitFor()
        expect(paid).toEqual([30])
        await field.fill(
          '[[call process_payment {"amount":40,"recipient":"Bob"}]][[then]][[say All right.]]',
        )
        await field.press('Enter')
        await page.getByRole('button', { name: 'Deny' }).click()
        await page.getByText('All right.', { exact: true }).waitFor()
        await page.getByText(/^(?:Denied|You denied it\.)$/).waitFor()
        expect(paid).toEqual([30])
      }
      expect(errors).toEqual([])
    } finally {
      await browser.close()
    }
  },
)
