import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  afterCalls,
  respond,
  type Call,
  declare,
  demoTools,
  location,
  pay,
  track,
  weather,
} from './prompt.ts'

const paid = {
  success: true,
  transaction_id: 'txn_1a2b',
  amount: 50,
  currency: 'USD',
  recipient: '花子',
  description: '',
  wallet_balance: 950,
}

const completed = (amount: number, recipient: string, left: number) => ({
  ...paid,
  amount,
  recipient,
  transaction_id: `t${String(amount)}`,
  wallet_balance: left,
})

/** Returns the replies in English and Japanese to this result of a call. */
function replyTo(call: Call, response: Readonly<Record<string, unknown>>): [string, string] {
  const say = (request: string): string => respond(afterCalls(request, [call], [response])).text
  return [say('please go on'), say('お願いします')]
}

describe('payments', () => {
  test('[ED15] reports the transaction and the balance of a completed payment', () => {
    expect(replyTo(pay(50, '花子'), paid)).toEqual([
      'I sent $50.00 to 花子 (transaction txn_1a2b). Your remaining balance is $950.00.',
      '花子さんに50.00ドル（取引ID txn_1a2b）を送金しました。残高は950.00ドルです。',
    ])
  })

  test.each([
    [
      { success: false, error: 'Insufficient funds. Balance: 1000.0 USD', transaction_id: null },
      'The payment of $50.00 to 花子 did not succeed: Insufficient funds. Balance: 1000.0 USD.',
      '花子さんへの50.00ドルの送金はできませんでした。理由：Insufficient funds. Balance: 1000.0 USD。',
    ],
    [
      { error: "Error in tool 'process_payment': kaboom" },
      "The payment of $50.00 to 花子 did not succeed: Error in tool 'process_payment': kaboom.",
      "花子さんへの50.00ドルの送金はできませんでした。理由：Error in tool 'process_payment': kaboom。",
    ],
    [
      { result: { ok: false, message: 'closed' } },
      'The payment of $50.00 to 花子 did not succeed: closed.',
      '花子さんへの50.00ドルの送金はできませんでした。理由：closed。',
    ],
  ])('[ED16] reports the reason of the failure %j', (response, english, japanese) => {
    expect(replyTo(pay(50, '花子'), response)).toEqual([english, japanese])
  })

  test.each([
    [{ error: 'This tool call is rejected.' }, undefined],
    [{ status: 'denied', error: 'The person denied this call. It did not run.' }, undefined],
    [{ denied: true, reason: 'too much' }, 'too much'],
    [{ status: 'denied', reason: 'too much' }, 'too much'],
    [{ approved: false, user_message: '高すぎる' }, '高すぎる'],
    [{ success: false, error: 'User denied the payment' }, 'User denied the payment'],
    [{ error: { message: 'The call was rejected by Ann' } }, 'The call was rejected by Ann'],
  ])('[ED17] reports that a call with %j did not run, and why', (response, reason) => {
    const english = 'The payment of $50.00 to 花子 was not carried out, because it was rejected.'
    const japanese = '花子さんへの50.00ドルの送金は拒否されたため、実行していません。'
    expect(replyTo(pay(50, '花子'), response)).toEqual(
      reason === undefined
        ? [english, japanese]
        : [`${english} Reason: “${reason}”.`, `${japanese}理由は「${reason}」です。`],
    )
  })

  test.each([
    [{ status: 'pending' }, 'has not happened yet', '承認を待っています'],
    [
      { error: 'This tool call requires confirmation, please approve or reject.' },
      'has not happened yet',
      'まだ実行されていません',
    ],
    [{ status: 'expired' }, 'the request expired', '期限が切れた'],
    [{ error: 'Approval request timed out' }, 'the request expired', '期限が切れた'],
    [{ cancelled: true }, 'was cancelled and not carried out', '取り消され'],
    [{ status: 'unknown' }, 'I do not know whether', '分かりません'],
    [{}, 'I do not know whether', '分かりません'],
    [{ foo: 1 }, 'I do not know whether', '分かりません'],
  ])('[ED18] reports the state of %j', (response, english, japanese) => {
    const [inEnglish, inJapanese] = replyTo(pay(50, '花子'), response)
    expect(inEnglish).toContain(english)
    expect(inJapanese).toContain(japanese)
  })

  test('[ED19] reports a payment as completed only if its result says so', () => {
    const unsuccessful = fc.oneof(
      fc.record({ success: fc.constant(false), transaction_id: fc.string(), amount: fc.float() }),
      fc.record({ error: fc.string({ minLength: 1 }), success: fc.boolean() }),
      fc.record({
        status: fc.constantFrom('denied', 'pending', 'EXPIRED', 'cancelled', 'unknown', 'failed'),
      }),
      fc.dictionary(
        fc.constantFrom('amount', 'recipient', 'note', 'message', 'ok'),
        fc.jsonValue(),
      ),
    )
    fc.assert(
      fc.property(unsuccessful, (response) => {
        const said = replyTo(pay(50, 'Bob'), response)
        expect(said[0]).not.toContain('I sent')
        expect(said[1]).not.toContain('送金しました')
      }),
    )
  })

  test.each([
    [{ ...paid, amount: 20, edited: { amount: 20 } }, 'amount 50 → 20'],
    [{ ...paid, amount: 20, edited: true }, 'amount 50 → 20'],
    [{ success: true, edited: { amount: { from: 50, to: 20 } } }, 'amount 50 → 20'],
  ])('[ED20] reports what actually ran: %j', (response, change) => {
    const [english, japanese] = replyTo(pay(50, '花子'), response)
    expect(english).toContain('I sent $20.00 to 花子')
    expect(english).toContain(`The request was edited before it ran: ${change}.`)
    expect(japanese).toContain(`内容は実行前に変更されました（${change}）。`)
  })

  test('[ED20] reports a note', () => {
    expect(replyTo(pay(50, '花子'), { ...paid, note: 'lowered' })[0]).toContain('Note: lowered.')
  })
})

describe('other tools', () => {
  const report = {
    temperature: 18.2,
    condition: 'Cloudy',
    humidity: 65,
    feels_like: 17,
    wind_speed: 3,
  }

  test.each<[Call, Record<string, unknown>, readonly [string, string]]>([
    [
      weather('Tokyo'),
      report,
      [
        'It is 18.2 °C and cloudy in Tokyo, with 65% humidity (feels like 17 °C, wind 3 m/s).',
        '東京は気温18.2℃、曇り、湿度65%、体感17℃、風速3m/sです。',
      ],
    ],
    [
      weather('Atlantis'),
      { error: 'API returned status 404', location: 'Atlantis' },
      [
        'The weather lookup for Atlantis did not succeed: API returned status 404.',
        'Atlantisの天気の確認はできませんでした。理由：API returned status 404。',
      ],
    ],
    [
      location,
      { latitude: 35.68123, longitude: -139.767, accuracy: 20.4 },
      [
        'You are at 35.6812° N, 139.7670° W, accurate to about 20 m.',
        '現在地は北緯35.6812度、西経139.7670度です（誤差約20m）。',
      ],
    ],
    [
      location,
      { denied: true, reason: 'private' },
      [
        'The location request was not carried out, because it was rejected. Reason: “private”.',
        '現在地の取得は拒否されたため、実行していません。理由は「private」です。',
      ],
    ],
    [
      track(2),
      { success: true, track: 2 },
      ['The music is now track 2.', 'BGMをトラック2に変更しました。'],
    ],
  ])('[ED21] reports the result of %j in the language of the request', (call, response, said) => {
    expect(replyTo(call, response)).toEqual(said)
  })

  test('[ED22] shows the result of an unknown tool in compact form, with its status', () => {
    const call = { name: 'lookup_order', args: { id: 5 } }
    const response = { id: 5, status: 'pending', items: ['pen', { size: 'A4' }], paid: null }
    expect(replyTo(call, response)).toEqual([
      'lookup_order returned id: 5, status: pending, items: [pen, {size: A4}], paid: null.',
      'lookup_orderの結果：id: 5, status: pending, items: [pen, {size: A4}], paid: null。',
    ])
    expect(replyTo(call, { result: 'It is fine' })[0]).toBe('lookup_order returned It is fine.')
    expect(replyTo(call, { error: 'no such order' })[0]).toBe(
      'The call of lookup_order did not succeed: no such order.',
    )
    expect(replyTo(call, { text: 'x'.repeat(10_000) })[0].length).toBeLessThan(450)
  })

  test('[ED23] writes one reply to several results', () => {
    const calls = [pay(30, 'Alice'), pay(40, 'Bob')]
    const both = afterCalls('Send $30 to Alice and $40 to Bob', calls, [
      completed(30, 'Alice', 930),
      completed(40, 'Bob', 960),
    ])
    expect(respond(both).text).toBe(
      'I sent $30.00 to Alice (transaction t30) and $40.00 to Bob (transaction t40). Your remaining balance is $930.00.',
    )
    const mixed = afterCalls(
      'Aliceに30ドル、東京の天気',
      [pay(30, 'Alice'), weather('Tokyo')],
      [{ denied: true }, report],
    )
    expect(respond(mixed, { mode: 'live' }).text).toBe(
      'Aliceさんへの30.00ドルの送金は拒否されたため、実行していません。東京は気温18.2℃、曇り、湿度65%です。',
    )
  })

  test('[ED23] names the calls that have no result yet', () => {
    const calls = [pay(30, 'Alice'), pay(40, 'Bob')]
    const reply = respond(afterCalls('Send $30 to Alice and $40 to Bob', calls, [{ denied: true }]))
    expect(reply.text).toContain('Still waiting: the payment of $40.00 to Bob.')
    expect(reply.calls).toEqual([])
  })
})

describe('named functions', () => {
  const lookup = declare(
    'lookup_order',
    {
      id: { type: 'INTEGER' },
      verbose: { type: 'BOOLEAN' },
      tags: { type: 'ARRAY', items: { type: 'STRING' } },
    },
    ['id'],
  )
  const ping = {
    name: 'pingHost',
    parametersJsonSchema: { type: 'object', properties: { host: { type: ['string', 'null'] } } },
  }
  const functions = [...demoTools, lookup, ping]

  test.each([
    ['lookup_order id=5 verbose=yes', { id: 5, verbose: true }],
    ['please lookup order {"id": "7", "tags": "new", "other": 1}', { id: 7, tags: ['new'] }],
    ['lookup_orderを id=5 で実行して', { id: 5 }],
    ['lookup_order(id=5)', { id: 5 }],
    ['run LOOKUP_ORDER with {"id": 1, "tags": ["a}", "{b"]}', { id: 1, tags: ['a}', '{b'] }],
  ])('[ED13] calls the function that %j names, with coerced arguments', (request, args) => {
    expect(respond(request, { functions }).calls).toEqual([{ name: 'lookup_order', args }])
  })

  test('[ED13] calls several named functions together', () => {
    const { calls } = respond('lookup_order id=5 and ping host host="a b"', { functions })
    expect(calls).toEqual([
      { name: 'lookup_order', args: { id: 5 } },
      { name: 'pingHost', args: { host: 'a b' } },
    ])
    expect(respond('pingHost()', { functions }).calls).toEqual([{ name: 'pingHost', args: {} }])
  })

  test.each([
    'lookup_order',
    'what does lookup_order do?',
    'lookup_order {"id": }',
    'prelookup_order id=5',
  ])('[ED14] calls nothing for %j', (request) => {
    expect(respond(request, { functions }).calls).toEqual([])
  })

  test.each([
    ['lookup_order id=many', 'lookup_order: it does not accept the value I have for id'],
    ['lookup_order verbose=yes', 'it does not accept the value I have for id'],
    ['change the music to track 9', 'it does not accept the value I have for track'],
  ])('[ED12] does not make the call of %j if the schema rejects its arguments', (request, text) => {
    const reply = respond(request, { functions })
    expect(reply.calls).toEqual([])
    expect(reply.text).toContain(text)
  })
})
