import { test } from 'vitest'
import { liveClient } from './support/approving-chat.ts'
import { Office } from './support/office.ts'
import { callPayment } from './support/payments.ts'
test('zz', async () => {
  await using office = await Office.open()
  const page = office.page()
  const S = page.webSocket; const s = new S(''); s.on('unexpected-response', (_q, r) => { console.log('RESP', r.statusCode); r.on('data', (d) => console.log(String(d))) }); s.on('error', (e) => console.log('ERR', e.message)); await new Promise((r) => setTimeout(r, 300))
  const chat = await page.open(liveClient)
  await chat.send(`${callPayment(30, 'Alice')}`)
  console.log(chat.status, chat.error, JSON.stringify(chat.messages), office.errors)
})
