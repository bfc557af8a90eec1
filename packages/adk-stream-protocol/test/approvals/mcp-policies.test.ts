// oxlint-disable typescript/no-deprecated -- LoopAgent is deprecated in favour of Workflow, and in use.
import type { InvocationContext } from '@google/adk'
import { LlmAgent, LoopAgent, MCPToolset } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { findPattern, matchesName } from '../../src/approvals/policy.ts'
import { readAnnotations } from '../../src/approvals/approval.ts'
import type { ApprovalPolicy } from '../../src/server/index.ts'
import { createBridge } from '../../src/server/index.ts'
import { joinLive, openLiveTestBridge, untilAsked } from '../live/support/live-test-bridge.ts'
import { assistant, tool } from '../support/agents.ts'
import { MCP_TRANSPORTS, serveHttp } from '../support/mcp-servers.ts'
import type { McpFixture } from '../support/mcp-servers.ts'
import type { Page } from './support/page.ts'
import { TestBridge } from './support/test-bridge.ts'

/** A loop that runs its steps in its own way, and so cannot wait. */
class OwnLoop extends LoopAgent {
  protected override runAsyncImpl(context: InvocationContext) {
    return super.runAsyncImpl(context)
  }
}

const READ = { name: 'read', annotations: { readOnlyHint: true } }
const ADD = { name: 'add', annotations: { readOnlyHint: false, destructiveHint: false } }
const DELETE = { name: 'delete', annotations: { destructiveHint: true } }
const BARE = { name: 'bare' }

function openFiles(files: McpFixture, approvals: ApprovalPolicy, prefix = 'files') {
  const toolset = new MCPToolset(files.connection, [], prefix)
  return TestBridge.open({ agent: (model) => assistant(model, { tools: [toolset] }), approvals })
}

/** Lets the model call a tool, in a chat of its own. */
async function call(page: Page, toolName: string): Promise<number> {
  const id = crypto.randomUUID()
  const text = `[[call ${toolName} {}]][[then]][[say Done.]]`
  const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
  return (await page.post({ id, messages: [message] })).status
}

const ALL_BUT_READ_ONLY: ApprovalPolicy = {
  'files_*': ({ annotations }) => !annotations.readOnlyHint,
}

describe.each(Object.entries(MCP_TRANSPORTS))('over %s', (_transport, serve) => {
  test('[AP441] a policy for all tools but read-only ones also covers tools without annotations and tools that the server adds later', async () => {
    await using files = await serve([READ, BARE])
    await using bridge = await openFiles(files, ALL_BUT_READ_ONLY)
    const page = bridge.page()
    await call(page, 'files_read')
    await call(page, 'files_bare')
    files.list([READ, BARE, { name: 'later' }])
    await call(page, 'files_later')
    const asked = await page.inbox()
    expect(asked.map(({ toolName }) => toolName)).toEqual(['files_bare', 'files_later'])
    expect(files.calls()).toEqual(['read'])
    const [{ id } = { id: '' }, other] = asked
    await page.decide(id, { approved: true })
    await page.untilState(id, 'succeeded')
    await page.decide(other?.id ?? '', { approved: false })
    expect(files.calls()).toEqual(['read', 'bare'])
  })
})

test('[AP560] reading approvals lists the tools of an MCP server once', async () => {
  let lists = 0
  await using files = await serveHttp([ADD, DELETE], undefined, () => (lists += 1))
  await using bridge = await openFiles(files, () => true)
  const page = bridge.page()
  for (const name of ['add', 'delete', 'add']) await call(page, `files_${name}`)
  const listedByRuns = lists
  const asked = await page.inbox()
  await page.inbox()
  await page.approval(asked[0]?.id ?? '')
  expect(asked).toHaveLength(3)
  for (const approval of asked) expect(approval).toHaveProperty('argsSchema')
  expect(lists - listedByRuns).toBe(1)
})

test('[AP441] a policy decides by the annotations and by the server', async () => {
  await using files = await serveHttp([READ, ADD, DELETE])
  // A server without a prefix can choose the names of its tools freely.
  await using other = await serveHttp([{ name: 'files_other', annotations: READ.annotations }])
  const toolsets = [new MCPToolset(files.connection, [], 'files'), new MCPToolset(other.connection)]
  await using bridge = await TestBridge.open({
    agent: (model) => assistant(model, { tools: toolsets }),
    approvals: ({ server, annotations: { readOnlyHint, destructiveHint } }) => {
      if (server !== 'files') return { title: 'Not from files' }
      return !readOnlyHint && { severity: destructiveHint ? 'high' : 'low' }
    },
  })
  const page = bridge.page()
  for (const name of ['read', 'add', 'delete', 'other']) await call(page, `files_${name}`)
  expect(await page.inbox()).toMatchObject([
    { toolName: 'files_add', severity: 'low' },
    { toolName: 'files_delete', severity: 'high' },
    { toolName: 'files_other', title: 'Not from files' },
  ])
  expect([files.calls(), other.calls()]).toEqual([['read'], []])
})

test('[AP630] the title of an MCP tool is that of its approval, unless the policy gives one', async () => {
  await using files = await serveHttp([
    { name: 'titled', title: 'Delete files', annotations: { title: 'Not this one' } },
    { name: 'annotated', annotations: { title: 'Move files' } },
    { name: 'named', title: 'Not the title of the policy' },
    { name: 'long', title: 'x'.repeat(201) },
    BARE,
  ])
  await using bridge = await openFiles(files, {
    files_named: ({ title = '' }) => ({ title: `Instead of: ${title}` }),
    'files_*': true,
  })
  const page = bridge.page()
  for (const name of ['titled', 'annotated', 'named', 'long', 'bare'])
    await call(page, `files_${name}`)
  expect((await page.inbox()).map(({ toolName, title }) => [toolName, title])).toEqual([
    ['files_titled', 'Delete files'],
    ['files_annotated', 'Move files'],
    ['files_named', 'Instead of: Not the title of the policy'],
    ['files_long', undefined],
    ['files_bare', undefined],
  ])
})

test('[AP441] in a live session, a policy decides by the annotations too', async () => {
  await using files = await serveHttp([READ, BARE])
  const toolset = new MCPToolset(files.connection, [], 'files')
  await using bridge = await openLiveTestBridge({
    agent: (model) => assistant(model, { tools: [toolset] }),
    approvals: ALL_BUT_READ_ONLY,
  })
  await using client = await joinLive(bridge)
  client.say('[[call files_read {}]][[then]][[call files_bare {}]][[then]][[say Done.]]')
  const [approvalId = ''] = await untilAsked(client)
  expect(files.calls()).toEqual(['read'])
  client.send({ type: 'decide', decisionId: 'd1', id: 'chat-1', approvalId, approved: true })
  await bridge.page().untilState(approvalId, 'succeeded')
  expect(files.calls()).toEqual(['read', 'bare'])
})

test.each([
  ['nothing', {}, 'destructive'],
  ['not read-only', { readOnlyHint: false }, 'destructive'],
  ['not destructive', { destructiveHint: false }, 'additive'],
  ['read-only', { readOnlyHint: true }, 'read-only'],
  ['read-only and destructive', { readOnlyHint: true, destructiveHint: true }, 'destructive'],
  ['no boolean', { readOnlyHint: 'true', destructiveHint: 0, openWorldHint: 'no' }, 'destructive'],
])('[AP441] a tool that claims %s', (_claim, claimed, meaning) => {
  const { readOnlyHint, destructiveHint, openWorldHint } = readAnnotations(claimed)
  expect({ readOnlyHint, destructiveHint, openWorldHint }).toEqual({
    readOnlyHint: meaning === 'read-only',
    destructiveHint: meaning === 'destructive',
    openWorldHint: true,
  })
})

test('[AP441] what the server claimed when the call was made is recorded, and later claims change nothing', async () => {
  await using files = await serveHttp([DELETE])
  await using bridge = await openFiles(files, {
    'files_*': ({ server, annotations }) =>
      annotations.destructiveHint && {
        hint: `${server ?? 'no server'} claims: destructive`,
        preview: (_args, context) => ({ headline: `${context.server ?? ''}: deletes` }),
        isFailure: (_output, context) => !context.annotations.destructiveHint,
      },
  })
  const page = bridge.page()
  await call(page, 'files_delete')
  files.list([{ name: 'delete', annotations: { readOnlyHint: true } }])
  const [asked] = await page.inbox()
  expect(asked).toMatchObject({
    hint: 'files claims: destructive',
    preview: { headline: 'files: deletes' },
  })
  const id = asked?.id ?? ''
  await page.decide(id, { approved: true })
  await page.untilState(id, 'succeeded')
  const { entries } = await bridge.bridge.audit({ approvalId: id })
  expect(entries[0]).toMatchObject({
    event: {
      terms: { claims: { server: 'files', annotations: { readOnlyHint: false } } },
    },
  })
})

test.each([
  ['a_*', 'a_', true],
  ['a_*', 'a_b_c', true],
  ['a_*', 'a', false],
  ['a_*', 'xa_b', false],
  ['*_read', 'a_read', true],
  ['*_read', 'a_read_all', false],
  ['a_*_b', 'a_b', false],
  ['a_*_b', 'a_x_b', true],
  ['a*b*c', 'a_b_b_c', true],
  ['a*bc*c', 'abc', false],
  ['*', 'anything', true],
  ['a.c', 'abc', false],
  ['a.*', 'abc', false],
])('[AP440] %s and the tool %s: %s', (pattern, name, matches) => {
  expect(matchesName(pattern, name)).toBe(matches)
})

test('[AP440] the most specific pattern counts, and two equally specific ones are refused', async () => {
  const names = ['*', 'files_*', 'files_delete_*']
  expect(findPattern(names, 'files_delete_all')).toBe('files_delete_*')
  expect(findPattern(names, 'files_read')).toBe('files_*')
  expect(findPattern(names, 'pay')).toBe('*')
  const tied = { 'ab*': true, '*ab': false }
  expect(() => findPattern(Object.keys(tied), 'abxab')).toThrow(/equally specific.*abxab/)
  const make = (toolName: string): unknown =>
    createBridge({ agent: agentWith(toolName), approvals: { ...tied, ab: true } })
  expect(() => make('abxab')).toThrow(/equally specific/)
  expect(() => make('ab')).not.toThrow()
  // A tool that the server adds later needs approval.
  await using files = await serveHttp([{ name: 'aba' }, { name: 'bab' }])
  await using bridge = await openFiles(files, { 'x_ab*': false, 'x_*ab': false }, 'x')
  const page = bridge.page()
  await call(page, 'x_aba')
  files.list([{ name: 'ab' }])
  await call(page, 'x_ab')
  expect(files.calls()).toEqual(['aba'])
  expect(await page.inbox()).toMatchObject([{ toolName: 'x_ab' }])
  expect(String(bridge.errors)).toContain('equally specific')
})

test('[AP440] a name counts before a pattern', async () => {
  await using files = await serveHttp([READ, DELETE])
  await using bridge = await openFiles(files, { '*': true, files_read: false })
  const page = bridge.page()
  await call(page, 'files_read')
  await call(page, 'files_delete')
  expect(files.calls()).toEqual(['read'])
  expect(await page.inbox()).toMatchObject([{ toolName: 'files_delete' }])
})

function agentWith(toolName: string): LlmAgent {
  return new LlmAgent({
    name: 'assistant',
    model: 'gemini-2.5-flash',
    tools: [tool(toolName, () => ({}))],
  })
}

test('[AP111] a pattern that matches no tool is refused', async () => {
  const agent = agentWith('files_read')
  const make = (pattern: string): unknown => createBridge({ agent, approvals: { [pattern]: true } })
  expect(() => make('flies_*')).toThrow(
    'has the pattern flies_*, which matches no tool of the agent. Did you mean `files_*`?',
  )
  expect(() => make('fils_*')).toThrow('Did you mean `files_*`?')
  expect(() => make('files_*')).not.toThrow()
  expect(() => make('*')).not.toThrow()
  await using files = await serveHttp([READ])
  await using bridge = await openFiles(files, { 'flies_*': true })
  expect(await call(bridge.page(), 'files_read')).toBe(500)
  expect(String(bridge.errors)).toContain('Did you mean `files_*`?')
  expect(files.calls()).toEqual([])
})

test('[AP12] a pattern is assumed to cover any toolset', async () => {
  await using files = await serveHttp([READ])
  const toolset = new MCPToolset(files.connection, [], 'files')
  const inner = new LlmAgent({ name: 'inner', model: 'gemini-2.5-flash', tools: [toolset] })
  const agent = new LlmAgent({
    name: 'outer',
    model: 'gemini-2.5-flash',
    tools: [tool('pay_all', () => ({}))],
    subAgents: [new OwnLoop({ name: 'loop', subAgents: [inner] })],
  })
  expect(() => createBridge({ agent, approvals: { 'files_*': true } })).toThrow(/a toolset/)
  expect(() => createBridge({ agent, approvals: { 'pay_*': true } })).toThrow(/a toolset/)
  expect(() => createBridge({ agent, approvals: { 'pay_*': false } })).not.toThrow()
})
