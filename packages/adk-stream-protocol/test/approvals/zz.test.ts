import { test } from 'vitest'
import { liveClient } from './support/approving-chat.ts'
import { Office } from './support/office.ts'
import { weather } from '../support/agents.ts'
import { callPayment, paymentTool } from './support/payments.ts'
test('zz', async () => {
  await using office = await Office.open({ tools: (wallet) => [weather, paymentTool(wallet)] })
  const page = office.page()
  const chat = await page.open(liveClient)
  await chat.send(`[[call get_weather {"place":"A"}]]${callPayment(50, 'Alice')}[[then]][[say Done]]`)
  console.log(chat.status, chat.error, JSON.stringify(chat.messages), office.errors)
  await chat.decide(true)
  console.log(chat.status, chat.error, JSON.stringify(chat.messages), office.errors)
  console.log(JSON.stringify((await page.messages()).at(-1)))
})
