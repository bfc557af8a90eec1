import { rmSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

import type { Store } from 'adk-stream-protocol/store'
import { openSqliteStore } from 'adk-stream-protocol/store'
import { expect, test } from 'vitest'

import {
  callPayment,
  paymentTool,
  Wallet,
} from '../../packages/adk-stream-protocol/test/approvals/support/payments.ts'
import { assistant } from '../../packages/adk-stream-protocol/test/support/agents.ts'
import { serve } from '../../packages/adk-stream-protocol/test/support/serve.ts'
import adk from '../../node_modules/@google/adk/package.json' with { type: 'json' }
import { writeFiles } from './support/examples.ts'
import { readPages } from './support/pages.ts'

/** The exports of the example in `docs/recipes/operations.md`. */
interface Operations {
  readonly listApprovals: (
    store: Store,
    state: string,
  ) => AsyncIterable<{ readonly toolName: string }>
  readonly exportAudit: (
    store: Store,
    after: number,
    write: (line: string) => void,
  ) => Promise<number>
}

test('[DO151] the recipe lists the pending approvals, and exports every audit entry since the last export', async () => {
  const page = readPages().find(({ path: file }) => file === 'docs/recipes/operations.md')
  const folder = writeFiles('operations', page?.blocks ?? [])
  const file = pathToFileURL(path.join(folder, 'operations.ts')).href
  const { listApprovals, exportAudit } = (await import(file)) as Operations
  await using store = await openSqliteStore({ path: ':memory:' })
  await using server = await serve({
    store,
    agent: (model) => assistant(model, { tools: [paymentTool(new Wallet())] }),
  })
  const answer = await server.browser().say(callPayment(50))
  expect(await answer.text()).toContain('tool-approval-request')

  const waiting: string[] = []
  for await (const { toolName } of listApprovals(store, 'requested')) waiting.push(toolName)
  expect(waiting).toEqual(['process_payment'])
  const lines: string[] = []
  const last = await exportAudit(store, 0, (line) => lines.push(line))
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { event: { type: 'requested' } },
  ])
  lines.length = 0
  expect(await exportAudit(store, last, (line) => lines.push(line))).toBe(last)
  expect(lines).toEqual([])
  rmSync(folder, { recursive: true })
})

test('[DO2] the recipe installs the version of the OpenTelemetry API that ADK depends on', () => {
  const page = readPages().find(({ path: file }) => file === 'docs/recipes/operations.md')
  const [, version] = /npm install @opentelemetry\/api@~(\S+) /.exec(page?.text ?? '') ?? []
  // A newer one is installed beside it, and npm refuses the SDK.
  expect(version).toBe(adk.dependencies['@opentelemetry/api'])
})
