import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { FileArtifactService, InMemoryArtifactService } from '@google/adk'
import { expect, test } from 'vitest'

import { apiKey } from '../../src/server/index.ts'
import { assistant, tool } from '../support/agents.ts'
import { hosts, nodeHost } from '../support/hosts.ts'
import { serve } from '../support/serve.ts'
import type { Host } from '../support/hosts.ts'

const PNG = Buffer.from('iVBORw0KGgo=', 'base64')

const FILES = {
  'chart.png': { inlineData: { mimeType: 'image/png', data: PNG.toString('base64') } },
  '報告 "1".txt': { text: 'Sales are up: 東京' },
  'page.html': {
    inlineData: {
      mimeType: 'text/html',
      data: Buffer.from('<script>x</script>').toString('base64'),
    },
  },
  'logo.svg': {
    inlineData: { mimeType: 'image/svg+xml', data: Buffer.from('<svg/>').toString('base64') },
  },
  'odd.bin': { inlineData: { mimeType: 'text/html\r\nx: y', data: 'AAAA' } },
}

async function open(host: Host = nodeHost) {
  const save = tool('save', async (_args, context) => {
    for (const [name, part] of Object.entries(FILES)) await context?.saveArtifact(name, part)
    return { ok: true }
  })
  return serve({
    host,
    agent: (model) => assistant(model, { tools: [save] }),
    artifactService: new InMemoryArtifactService(),
    authenticate: apiKey({ hanako: { id: 'hanako' }, taro: { id: 'taro' } }),
  })
}

const HANAKO = { 'x-api-key': 'hanako' }

test.each(hosts)('[HO120] an artifact has an address, for its owner alone: $name', async (host) => {
  await using server = await open(host)
  const browser = server.browser()
  const say = { id: 'chat-1', messages: [{ role: 'user', content: '[[call save {}]]' }] }
  await (await browser.post('/stream', say, HANAKO)).text()
  await (await browser.post('/stream', say, HANAKO)).text()
  const read = (path: string, headers = HANAKO): Promise<Response> => browser.get(path, headers)
  const picture = await read('/chats/chat-1/artifacts/chart.png')
  expect(picture.status).toBe(200)
  expect(picture.headers.get('content-type')).toBe('image/png')
  expect(picture.headers.get('content-disposition')).toMatch(
    /^inline; filename\*=UTF-8''chart.png$/,
  )
  expect(picture.headers.get('x-content-type-options')).toBe('nosniff')
  expect(Buffer.from(await picture.arrayBuffer())).toEqual(PNG)
  const text = await read(`/chats/chat-1/artifacts/${encodeURIComponent('報告 "1".txt')}?version=0`)
  expect(text.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(await text.text()).toBe('Sales are up: 東京')
  const refusals = await Promise.all([
    read('/chats/chat-1/artifacts/chart.png', { 'x-api-key': 'taro' }),
    read('/chats/chat-2/artifacts/chart.png'),
    read('/chats/chat-1/artifacts/none.png'),
    read('/chats/chat-1/artifacts/chart.png?version=7'),
    read('/chats/chat-1/artifacts/chart.png?version=-1'),
  ])
  expect(refusals.map(({ status }) => status)).toEqual([404, 404, 404, 404, 400])
  const unknown = await Promise.all(refusals.slice(0, 4).map((refusal) => refusal.json()))
  expect(unknown).toEqual(Array(4).fill(unknown[0]))
  expect(unknown[0]).toMatchObject({ error: { code: 'unknown-artifact' } })
})

test.each(['page.html', 'logo.svg', 'odd.bin'])(
  '[HO121] %s is saved and never shown: it would be a page of this origin',
  async (name) => {
    await using server = await open()
    const browser = server.browser()
    const say = { id: 'chat-1', messages: [{ role: 'user', content: '[[call save {}]]' }] }
    await (await browser.post('/stream', say, HANAKO)).text()
    const file = await browser.get(`/chats/chat-1/artifacts/${name}`, HANAKO)
    expect(file.headers.get('content-type')).toBe('application/octet-stream')
    expect(file.headers.get('content-disposition')).toMatch(/^attachment; /)
    expect(file.headers.get('content-security-policy')).toContain('sandbox')
    expect(file.headers.get('x')).toBeNull()
  },
)

test('[HO120] a name or a principal that a file cannot have is unknown', async () => {
  await using server = await serve({
    agent: (model) => assistant(model),
    artifactService: new FileArtifactService(mkdtempSync(join(tmpdir(), 'artifacts-'))),
    authenticate: apiKey({ hanako: { id: 'hanako' }, taro: { id: 'auth0|taro' } }),
  })
  const browser = server.browser()
  for (const name of ['..', '../x', '../../../../../etc/hostname', '/etc/hostname', 'a\0b'])
    for (const key of ['hanako', 'taro']) {
      const url = `/chats/chat-1/artifacts/${encodeURIComponent(name)}`
      const { status } = await browser.get(url, { 'x-api-key': key })
      expect([name, key, status]).toEqual([name, key, 404])
    }
})
