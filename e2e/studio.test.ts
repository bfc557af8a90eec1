import { type BaseLlm, FunctionTool, LlmAgent } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { findViolations } from './support/axe-violations.ts'
import { chatPage } from './support/chat-page.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { openTestStudio } from './support/test-studio.ts'

/** A tool with the name of one of the demo's, which does something else. */
function createPayrollAgent(calls: unknown[], model: BaseLlm): LlmAgent {
  return new LlmAgent({
    name: 'payroll',
    description: 'Prepares the payroll of the month.',
    model,
    tools: [
      new FunctionTool({
        name: 'process_payment',
        description: 'Files a payment slip. No money is sent.',
        parameters: z.object({ amount: z.number(), recipient: z.string() }),
        execute: (input) => {
          calls.push(input)
          return { filed: true }
        },
      }),
    ],
  })
}

const CALL = '[[call process_payment {"amount":30,"recipient":"Alice"}]][[then]][[say Filed.]]'

test.each([
  ['en-US', 'Approve', /Send \$|Sent \$|Payment$|Place/],
  ['ja-JP', '承認', /送金|ドル/],
])(
  '[SD1303] a foreign tool has its own words, also if the demo has one of the same name, in %s',
  async (locale, approve, words) => {
    const calls: unknown[] = []
    await using studio = await openTestStudio({
      agents: (model) => createPayrollAgent(calls, model),
      bridge: { approvals: { process_payment: true } },
    })
    const page = await studio.openPage({ locale })
    const { send, tool } = chatPage(page)
    await send(CALL)
    const card = tool('process_payment')
    const button = card.getByRole('button', { name: approve, exact: true })
    await button.waitFor()
    expect(await card.innerText()).not.toMatch(words)
    await takeScreenshot(page, `studio-card-${locale}`)
    expect(await findViolations(page)).toEqual([])
    await button.click()
    await page.getByText('Filed.', { exact: true }).waitFor()
    expect(calls).toEqual([{ amount: 30, recipient: 'Alice' }])
    expect(await card.innerText()).not.toMatch(words)
  },
)
