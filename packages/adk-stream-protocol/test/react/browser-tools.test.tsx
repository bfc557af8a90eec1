import { describe, expect, test } from 'vitest'

import { callTool } from '../../src/client/tools/browser-tools.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { ASK, locationTool, TOKYO } from '../support/locating.ts'
import { TestBrowser, WAYS } from './support/chat-page.tsx'

describe.each(WAYS)('over %s', (way) => {
  test('[RE9] a tool runs once, although effects run twice and its function changes with every render', async () => {
    await using testBridge = await TestBridge.open({ tools: () => [locationTool()] })
    await using browser = new TestBrowser(testBridge, way)
    const ran: string[] = []
    const page = browser.show({ tools: { get_location: () => ran.push('old') } })
    page.rerender({
      tools: {
        get_location: () => {
          ran.push('new')
          return TOKYO
        },
      },
    })
    page.say(ASK)
    await page.until('There you are.')
    await page.untilReady()
    expect(ran).toEqual(['new'])
    expect(testBridge.lastPrompt).toContain('139.7')
  })

  test('[RE9] a gated tool runs after it is approved', async () => {
    await using testBridge = await TestBridge.open({ tools: () => [locationTool({ gated: true })] })
    await using browser = new TestBrowser(testBridge, way)
    let runs = 0
    const run = () => {
      runs += 1
      return TOKYO
    }
    const page = browser.show({ tools: { get_location: { run, afterApproval: true } } })
    page.say(ASK)
    await page.until('Waiting for your decision.')
    expect(runs).toBe(0)
    await page.click('Approve')
    await page.until('There you are.')
    await page.untilReady()
    expect(runs).toBe(1)
    expect(testBridge.lastPrompt).toContain('139.7')
  })

  test('[RE9] a denied tool never runs', async () => {
    await using testBridge = await TestBridge.open({ tools: () => [locationTool({ gated: true })] })
    await using browser = new TestBrowser(testBridge, way)
    let runs = 0
    const run = () => (runs += 1)
    const page = browser.show({ tools: { get_location: { run, afterApproval: true } } })
    page.say(ASK)
    await page.click('Deny…')
    await page.click('Deny')
    await page.until('There you are.')
    await page.untilReady()
    expect(runs).toBe(0)
  })
  test('[RE9] a tool that needs no approval runs without one, as in the client library', async () => {
    await using testBridge = await TestBridge.open({ tools: () => [locationTool()] })
    await using browser = new TestBrowser(testBridge, way)
    let runs = 0
    const run = () => {
      runs += 1
      return TOKYO
    }
    // Another than the types of the hook allow, as of a page without types.
    const tools = { get_location: { run } } as unknown as { get_location: typeof run }
    const page = browser.show({ tools })
    page.say(ASK)
    await page.until('There you are.')
    await page.untilReady()
    expect(runs).toBe(1)
  })
})

test('[RE9] a missing tool is reported as an error, and never as done', () => {
  expect(() => callTool(undefined, {} as never)).toThrow('The page no longer has this tool.')
})
