import type { BaseLlm } from '@google/adk'
import { expect, test } from 'vitest'

import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { approvingClients } from '../approvals/support/approving-chat.ts'
import { callPayment, paymentTool, Wallet } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { refusal } from './support/subjects.ts'
import { assistant } from '../support/agents.ts'
import { createDatabase } from '../support/postgres.ts'
import { serve } from '../support/serve.ts'

const [client] = approvingClients

test('[ST314] a bridge removes unused chats and old audit entries, but no chat with a running turn or a pending approval', async () => {
  if (!client) throw new Error('There is no client.')
  await using testBridge = await TestBridge.open({
    retention: { chatsMs: 1, auditMs: 1, intervalMs: 20 },
  })
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
  const [id = ''] = chat.asked
  // Many runs of retention later, the approval can still be decided, and its turn continues.
  const record = testBridge.store.approvals
  await expect.poll(async () => (await record.verifyAudit?.())?.removed?.seq).toBeGreaterThan(0)
  expect((await record.get(id))?.state.name).toBe('requested')
  await chat.decide(true)
  expect(chat.text).toBe('Paid.')
  expect(testBridge.wallet.payments).toHaveLength(1)
  await expect.poll(() => record.get(id), { timeout: 120_000 }).toBeUndefined()
  const all = { appName: 'adk-stream-protocol', userId: 'hanako' }
  await expect
    .poll(async () => (await testBridge.store.sessions.listSessions(all)).sessions, {
      timeout: 120_000,
    })
    .toEqual([])
  expect(await record.verifyAudit?.()).not.toHaveProperty('fault')
  expect(testBridge.errors).toEqual([])
})

test('[ST316] a bridge deletes a principal: pending approvals are cancelled and the chats are gone', async () => {
  if (!client) throw new Error('There is no client.')
  await using testBridge = await TestBridge.open()
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send(callPayment(50))
  const [id = ''] = chat.asked
  const { bridge, store } = testBridge
  await bridge.deletePrincipal('hanako', { audit: 'keep' })
  expect((await store.approvals.get(id))?.state.name).toBe('cancelled')
  expect(await page.decide(id, { approved: true })).toMatchObject({ status: 410 })
  expect(testBridge.wallet.payments).toHaveLength(0)
  const chats = { appName: 'adk-stream-protocol', userId: 'hanako' }
  expect((await store.sessions.listSessions(chats)).sessions).toEqual([])
  await bridge.deletePrincipal('hanako', { audit: 'remove-contents' })
  expect(await store.approvals.get(id)).toBeUndefined()
  expect((await bridge.audit()).entries).toEqual([])
  expect(await store.approvals.verifyAudit?.()).not.toHaveProperty('fault')
})

test('[ST316] a bridge does not delete a chat in which another process runs a turn', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  await using server = await serve({ store, authenticate: () => ({ id: 'hanako' }) })
  const browser = server.browser()
  await (await browser.say('[[say Hello.]]')).text()
  const chat = { appName: 'adk-stream-protocol', principalId: 'hanako', chatId: 'chat-1' }
  const lock = { worker: 'other', token: 'token', leaseMs: 60_000, background: false }
  expect(await store.approvals.lockChat(chat, lock)).toBe(true)
  const remove = () => server.bridge.deletePrincipal('hanako', { audit: 'keep', waitMs: 0 })
  await expect(remove()).rejects.toEqual(refusal('busy'))
  expect((await browser.messages()).messages).toHaveLength(2)
  await store.approvals.unlockChat(chat, 'token')
  await remove()
  expect((await browser.messages()).messages).toEqual([])
})

const ALL_CHATS = { appName: 'adk-stream-protocol', userId: 'hanako' }
const CHAT = { appName: 'adk-stream-protocol', principalId: 'hanako', chatId: 'chat-1' }
const PAYING = {
  authenticate: () => ({ id: 'hanako' }),
  agent: (model: BaseLlm) => assistant(model, { tools: [paymentTool(new Wallet())] }),
}
const ENDLESS = '[[say So far.]][[wait never]][[say Not this.]]'

test('[ST316] deleting a principal stops their running turn, at the model too', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  await using server = await serve({ store, authenticate: () => ({ id: 'hanako' }) })
  const reply = await server.browser().say(ENDLESS)
  const request = await server.emulator.nextRequest()
  await server.bridge.deletePrincipal('hanako', { audit: 'keep' })
  expect(await reply.text()).not.toContain('Not this.')
  await request.done
  expect(request.aborted).toBe(true)
  expect((await store.sessions.listSessions(ALL_CHATS)).sessions).toEqual([])
  expect(await store.approvals.findLockHolder(CHAT)).toBeUndefined()
  expect(server.errors).toEqual([])
})

test('[ST316] any server deletes a principal whose turn and whose approval are on another one', async () => {
  await using database = await createDatabase()
  const open = () => openPostgresStore({ connectionString: database.url })
  await using firstStore = await open()
  await using secondStore = await open()
  await using first = await serve({ store: firstStore, ...PAYING })
  await using second = await serve({ store: secondStore, ...PAYING })
  const browser = first.browser()
  const asked = await (await browser.say(callPayment(50), 'chat-2')).text()
  const approvalId = /"approvalId":"([^"]+)"/.exec(asked)?.[1] ?? ''
  const reply = await browser.say(ENDLESS)
  // The first request is the one of the payment.
  await first.emulator.nextRequest()
  const request = await first.emulator.nextRequest()
  await second.bridge.deletePrincipal('hanako', { audit: 'keep' })
  expect(await reply.text()).not.toContain('Not this.')
  await request.done
  expect(request.aborted).toBe(true)
  expect((await secondStore.sessions.listSessions(ALL_CHATS)).sessions).toEqual([])
  expect((await secondStore.approvals.get(approvalId))?.state.name).toBe('cancelled')
  const tables = ['events', 'chats', 'chat_locks', 'relay_turns', 'relay_rows']
  for (const table of tables) {
    const rows = await database.run(`SELECT * FROM adk_stream_protocol.${table}`)
    expect([table, rows]).toEqual([table, []])
  }
  expect([...first.errors, ...second.errors]).toEqual([])
})
