import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { type LogEntry, Operations } from '../../src/server/operations/operations.ts'
import {
  createAuditCheck,
  createReadiness,
  healthRoutes,
} from '../../src/server/routes/health-routes.ts'
import { describeUntestedAdk, TESTED_ADK } from '../../src/shared/tested-adk.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { defer } from '../support/agents.ts'
import { serve } from '../support/serve.ts'

test('[HO300] a check of a store that does not respond ends in time, and concurrent checks share one read', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const gate = defer()
  let reads = 0
  const readiness = createReadiness({
    store: {
      get: async () => {
        reads += 1
        await gate.promise
        return store
      },
    },
    backend: { get: () => Promise.reject(new Error('A toolset cannot be listed.')) },
    timeoutMs: 20,
    fault: () => undefined,
    onChecked: () => undefined,
  })
  const slow = { name: 'store', cause: new Error('The check of the store took over 20 ms.') }
  expect(await Promise.all([readiness.check(), readiness.check()])).toEqual([slow, slow])
  expect(await readiness.check()).toEqual(slow)
  expect(reads).toBe(1)
  gate.resolve()
  await expect.poll(() => readiness.check()).toMatchObject({ name: 'agent' })
  readiness.close()
  expect(await readiness.check()).toEqual({ name: 'closing' })
})

test('[HO300] a changed audit record fails the check `audit`', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const readiness = createReadiness({
    store: { get: async () => store },
    backend: { get: () => Promise.reject(new StoreError('tampered', 'Entry 3 was changed.')) },
    fault: () => undefined,
    onChecked: () => undefined,
  })
  expect(await readiness.check()).toMatchObject({ name: 'audit' })
})

test('[LG92] a probe at the start waits for the check of the audit record', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const gate = defer()
  const { approvals } = store
  approvals.verifyAudit = async () => {
    await gate.promise
    return { entries: 2, head: undefined, fault: { seq: 3, reason: 'changed' } }
  }
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  const audit = createAuditCheck('report', onError, 600_000)
  await audit.check(approvals)
  const waited = audit.untilEnded()
  expect(audit.isTampered()).toBe(false)
  gate.resolve()
  await waited
  expect(audit.isTampered()).toBe(true)
  expect(errors).toMatchObject([{ code: 'tampered' }])
})

test('[HO141] a bridge that lets its turns finish is not ready, and says why', async () => {
  await using server = await serve()
  const reply = await server.browser().say('[[say One.]][[wait gate]][[say Two.]]')
  const probe = async () => {
    const response = await fetch(`${server.url}/ready`)
    const body: unknown = await response.json()
    return { status: response.status, body }
  }
  expect(await probe()).toEqual({ status: 200, body: { status: 'ready' } })
  const closed = server.bridge.close()
  expect(await probe()).toMatchObject({ status: 503, body: { check: 'closing' } })
  // It is no error, and probes repeat.
  expect(server.errors).toEqual([])
  server.emulator.release('gate')
  expect(await reply.text()).toContain('Two.')
  await closed
})

test('[DV1511] a version of ADK that is not tested is a warning of `GET /ready`, a log entry, and nothing else', async () => {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  const { devDependencies } = JSON.parse(manifest) as { devDependencies: Record<string, string> }
  expect(TESTED_ADK).toBe(devDependencies['@google/adk'])
  expect(describeUntestedAdk(TESTED_ADK)).toBeUndefined()
  const sentence = describeUntestedAdk('2.2.1')
  expect(sentence).toMatch(/^@google\/adk 2\.2\.1 is not tested .* 2\.0\.0 is\./)

  const entries: LogEntry[] = []
  const onError = (error: unknown): void => void entries.push({ error } as never)
  new Operations({ log: (entry) => void entries.push(entry), onError }).started(sentence)
  expect(entries).toEqual([
    expect.objectContaining({ level: 'info', event: 'bridge.started' }),
    { level: 'warn', event: 'adk.untested', message: sentence },
  ])

  const audit = createAuditCheck('report', onError)
  const readiness = { check: () => Promise.resolve(undefined), close: () => undefined }
  const route = healthRoutes(readiness, { audit, onError, isAdkTested: false }).find(
    ({ path }) => path === '/ready',
  )
  expect(await route?.handle({} as never)).toMatchObject({
    status: 200,
    body: { status: 'ready', warnings: ['adk-version'] },
  })
  await using server = await serve({ log: (entry) => void entries.push(entry) })
  const response = await fetch(`${server.url}/ready`)
  // The tests run with the tested version.
  expect(await response.json()).toEqual({ status: 'ready' })
  expect(entries.filter(({ event }) => event === 'adk.untested')).toHaveLength(1)
})
