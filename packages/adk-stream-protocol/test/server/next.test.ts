import { LlmAgent } from '@google/adk'
import { expect, test } from 'vitest'

import { createBridge } from '../../src/server/index.ts'
import { toRouteHandlers } from '../../src/use/next.ts'

const agent = new LlmAgent({ name: 'assistant', model: 'gemini-2.5-flash' })

test('[HO150] route handlers ask for the bridge with each request, and not before', async () => {
  await using first = createBridge({ agent })
  await using second = createBridge({ agent, basePath: '/api/agent' })
  const given = [first, second]
  const { GET } = toRouteHandlers(() => given.shift() ?? second)
  expect(given).toHaveLength(2)
  const statuses = [
    await GET(new Request('http://localhost/health')),
    await GET(new Request('http://localhost/api/agent/health')),
  ].map(({ status }) => status)
  expect(statuses).toEqual([200, 200])
})
