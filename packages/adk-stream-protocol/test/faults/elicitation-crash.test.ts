import { expect } from 'vitest'

import { longTest } from '../../../../test/support/long-test.ts'
import { serveHttp } from '../support/mcp-servers.ts'
import { openCrashPair, POLLING } from './support/crash-pair.ts'
import { databases } from './support/databases.ts'
import { Person } from './support/person.ts'

const elicit = {
  message: 'Which city?',
  requestedSchema: { type: 'object', properties: { city: { type: 'string' } } },
}

// In `npm test`, the crash in a live session also cancels the question of an MCP server.
longTest.each(databases)(
  '[AP507] a question whose server was killed is cancelled by the next server, and the person sees it, on $name',
  async ({ open }) => {
    await using files = await serveHttp([{ name: 'ask', _meta: { elicit } }])
    const { url: mcpUrl = '' } = files.connection as { url?: string }
    await using pair = await openCrashPair(open, { MCP_URL: mcpUrl })
    const before = new Person(pair.url)
    // The stream ends with its server.
    const stream = before.say('[[call files_ask {}]][[then]][[say Done.]]').catch(() => undefined)
    const readPendingTools = async () => (await before.approvals()).map(({ toolName }) => toolName)
    await expect.poll(readPendingTools, POLLING).toEqual(['mcp_elicitation'])
    const id = (await before.approvals())[0]?.id ?? ''
    const after = new Person(await pair.crash())
    await stream
    const readState = async () => (await after.approval(id))?.approval.state
    await expect.poll(readState, POLLING).toBe('cancelled')
    const [, reply] = await after.messages()
    expect(reply?.parts.find(({ type }) => type === 'data-approval')).toMatchObject({
      data: { kind: 'elicitation', state: 'cancelled' },
    })
    const readFirstCall = async () => JSON.stringify((await after.calls())[0])
    await expect.poll(readFirstCall, POLLING).toContain('It may or may not have taken effect')
    expect(files.calls()).toEqual(['ask'])
  },
)
