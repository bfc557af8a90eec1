import { expect, test } from 'vitest'

import { serveHttp } from '../support/mcp-servers.ts'
import { bundleChildren } from './support/children.ts'
import { databases } from './support/databases.ts'
import { makeFolder } from './support/folder.ts'
import { Person } from './support/person.ts'

const PATIENCE = { timeout: 120_000, interval: 50 }
const elicit = {
  message: 'Which city?',
  requestedSchema: { type: 'object', properties: { city: { type: 'string' } } },
}

test.each(databases.slice(0, 1))(
  '[AP507] a question whose server was killed is cancelled by the next server, and the person sees it, on $name',
  async ({ open }) => {
    await using database = await open()
    await using folder = await makeFolder()
    await using files = await serveHttp([{ name: 'ask', _meta: { elicit } }])
    const { url: mcpUrl = '' } = files.connection as { url?: string }
    const env = { ...database.env, MCP_URL: mcpUrl }
    const children = await bundleChildren()
    await using victim = children.start(folder, 'g0', env)
    await using heir = children.start(folder, 'g1', env)
    const before = new Person(await victim.serve())
    // The stream ends with its server.
    const stream = before.say('[[call files_ask {}]][[then]][[say Done.]]').catch(() => undefined)
    const ask = async () => (await before.approvals()).map(({ toolName }) => toolName)
    await expect.poll(ask, PATIENCE).toEqual(['mcp_elicitation'])
    const id = (await before.approvals())[0]?.id ?? ''
    expect(await victim.kill()).toBe('SIGKILL')
    await stream
    const after = new Person(await heir.serve())
    const read = async () => (await after.approval(id))?.approval.state
    await expect.poll(read, PATIENCE).toBe('cancelled')
    const [, reply] = await after.messages()
    expect(reply?.parts.find(({ type }) => type === 'data-approval')).toMatchObject({
      data: { kind: 'elicitation', state: 'cancelled' },
    })
    expect(files.calls()).toEqual(['ask'])
  },
)
