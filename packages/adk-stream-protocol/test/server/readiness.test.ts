import { expect, test } from 'vitest'

import { createAuditCheck, createReadiness } from '../../src/server/routes/health-routes.ts'
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
