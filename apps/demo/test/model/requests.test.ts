import { describe, expect, test } from 'vitest'
import {
  afterCalls,
  respond,
  type Call,
  declare,
  demoTools,
  location,
  model,
  pay,
  track,
  user,
  weather,
} from './prompt.ts'

const described = (call: Call, description: string): Call => ({
  ...call,
  args: { ...call.args, description },
})

describe('payments', () => {
  test.each<[string, readonly Call[]]>([
    ['花子さんに50ドル送金してください', [pay(50, '花子')]],
    ['100ドルをAliceに送金して', [pay(100, 'Alice')]],
    ['アリスに$30送って', [pay(30, 'アリス')]],
    ['Alice Smithさんに20ドル送金', [pay(20, 'Alice Smith')]],
    ['Bobに昼食代として12.50ユーロ払って', [described(pay(12.5, 'Bob', 'EUR'), '昼食代')]],
    ['今日中に30ドルをBobに送金して', [pay(30, 'Bob')]],
    ['Send $50 to Alice', [pay(50, 'Alice')]],
    ['pay Bob 12.50 euros for lunch', [described(pay(12.5, 'Bob', 'EUR'), 'lunch')]],
    ['pay $12.50 for lunch to Bob', [described(pay(12.5, 'Bob'), 'lunch')]],
    ['Could you please transfer 20 to my brother?', [pay(20, 'my brother')]],
    ['wire ¥500 to alice@example.com', [pay(500, 'alice@example.com', 'JPY')]],
    ['send 50ドル to 花子さん', [pay(50, '花子')]],
    ['Send 50 USD to 花子', [pay(50, '花子')]],
    ["transfer £5 to Alice's account", [pay(5, 'Alice', 'GBP')]],
    ['send fifty cents to bob', [pay(0.5, 'bob')]],
    ['send -5 dollars to Bob', [pay(-5, 'Bob')]],
  ])('[ED1] reads the payment of %j', (request, calls) => {
    expect(respond(request)).toMatchObject({ calls, text: '' })
  })

  test.each<[string, readonly Call[]]>([
    ['Aliceに30ドル、Bobに40ドル送金してください', [pay(30, 'Alice'), pay(40, 'Bob')]],
    ['100ドルをAliceに、50ドルをBobに送金して', [pay(100, 'Alice'), pay(50, 'Bob')]],
    ['花子さんと太郎さんに5ユーロずつ送って', [pay(5, '花子', 'EUR'), pay(5, '太郎', 'EUR')]],
    ['Send $30 to Alice and $40 to Bob', [pay(30, 'Alice'), pay(40, 'Bob')]],
    ['Send $10 to each of Alice and Bob', [pay(10, 'Alice'), pay(10, 'Bob')]],
    ['Send Alice $30 and Bob $40', [pay(30, 'Alice'), pay(40, 'Bob')]],
    ['send Ann, Bob and Carol $5 each', [pay(5, 'Ann'), pay(5, 'Bob'), pay(5, 'Carol')]],
    ['Send $30 to Alice. Also pay Bob €40.', [pay(30, 'Alice'), pay(40, 'Bob', 'EUR')]],
  ])('[ED2] makes the payments of %j in parallel', (request, calls) => {
    expect(respond(request).calls).toEqual(calls)
  })

  test.each<[string, Call]>([
    ['花子さんに５０ドル送って', pay(50, '花子')],
    ['太郎くんに五十ドル払って', pay(50, '太郎')],
    ['3万円を山田様に振り込んで', pay(30_000, '山田', 'JPY')],
    ['くにこちゃんに3万5千円送金', pay(35_000, 'くにこ', 'JPY')],
    ['一郎さんに千二百円送金', pay(1_200, '一郎', 'JPY')],
    ['さとうさんに2.5万円送金', pay(25_000, 'さとう', 'JPY')],
    ['Send $1,200 to Carol', pay(1_200, 'Carol')],
    ['Send $1,234.56 to Carol', pay(1_234.56, 'Carol')],
    ['Send €12,50 to Carol', pay(12.5, 'Carol', 'EUR')],
    ['send $1.5k to Carol', pay(1_500, 'Carol')],
    ['send twenty-five dollars to Carol', pay(25, 'Carol')],
    ['send two hundred and five yen to Carol', pay(205, 'Carol', 'JPY')],
  ])('[ED3] reads the number and the bare name of %j', (request, call) => {
    expect(respond(request).calls).toEqual([call])
  })

  test.each([
    ['Send $50', 'Gladly. Who should receive the $50.00?'],
    ['pay Alice', 'Gladly. How much should I send to Alice?'],
    [
      'I want to make a payment',
      'Gladly. Who should receive the money, and how much should I send?',
    ],
    ['50ドル送金して', '承知しました。50.00ドルをどなたに送金しますか？'],
    ['花子さんに送金して', '承知しました。花子さんにいくら送金しますか？'],
    ['Send $30 to Alice and $40', 'Gladly. Who should receive the $40.00?'],
  ])('[ED4] asks for the missing values of %j', (request, text) => {
    expect(respond(request)).toMatchObject({ calls: [], text })
  })

  test.each<[readonly string[], Call]>([
    [['pay Alice', '50 dollars'], pay(50, 'Alice')],
    [['Send $50', 'to Alice please'], pay(50, 'Alice')],
    [['送金して', '花子さんに', '3万円'], pay(30_000, '花子', 'JPY')],
    [['Send $50 to Alice', 'try again'], pay(50, 'Alice')],
  ])('[ED4] completes an earlier request with the next message: %j', (requests, call) => {
    const contents = requests.flatMap((request) => [user(request), model('?')]).slice(0, -1)
    expect(respond(contents).calls).toEqual([call])
  })

  test.each([
    'Send $30 to Alice and then $40 to Bob',
    'Send $30 to Alice. Then send $40 to Bob.',
    'Aliceに30ドル、その後Bobに40ドル送金してください',
    'Aliceに30ドル送金して、次にBobに40ドル送金してください',
  ])('[ED5] calls the steps of %j in sequence', (request) => {
    expect(respond(request).calls).toEqual([pay(30, 'Alice')])
    const done = afterCalls(request, [pay(30, 'Alice')], [{ success: true, transaction_id: 't1' }])
    expect(respond(done).calls).toEqual([pay(40, 'Bob')])
    const both = [
      ...done,
      { role: 'model', parts: [{ functionCall: { id: 'b', ...pay(40, 'Bob'), args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { id: 'b', response: { success: true } } }] },
    ]
    expect(respond(both).calls).toEqual([])
  })

  test.each([
    { error: 'This tool call is rejected.' },
    { success: false },
    { status: 'pending' },
    {},
  ])('[ED5] cancels the remaining steps after %j', (response) => {
    const request = 'Send $30 to Alice and then $40 to Bob'
    const reply = respond(afterCalls(request, [pay(30, 'Alice')], [response]))
    expect(reply.calls).toEqual([])
    expect(reply.text).toContain('did not go on')
  })

  test.each([
    "don't send $5 to Bob",
    'Did you send $5 to Bob?',
    'What happens if I send $5 to Bob?',
    'Bobに5ドル送金しないで',
    'Bobに5ドル送金しましたか',
    'How much is $30 in yen?',
    'Pay attention to the 3 bears',
    'give me 2 examples',
  ])('[ED6] does not pay for %j', (request) => {
    expect(respond(request).calls).toEqual([])
  })
})

describe('weather, location and music', () => {
  test.each<[string, readonly string[]]>([
    ['東京の天気は?', ['Tokyo']],
    ['大阪と軽井沢の天気を教えて', ['Osaka', '軽井沢']],
    ['サンフランシスコの気温は？', ['San Francisco']],
    ['京都、札幌、パリの天気', ['Kyoto', 'Sapporo', 'Paris']],
    ['What is the weather in Tokyo, Paris and Springfield?', ['Tokyo', 'Paris', 'Springfield']],
    ['will it rain in new york tomorrow?', ['New York']],
    ["How's Springfield's weather?", ['Springfield']],
    ['weather in 東京', ['Tokyo']],
    ['is it cold in Oslo?', ['Oslo']],
  ])('[ED7] looks up the weather of %j', (request, places) => {
    expect(respond(request).calls).toEqual(places.map(weather))
  })

  test('[ED7] asks for the city and uses the next message', () => {
    expect(respond('weather?')).toMatchObject({
      calls: [],
      text: 'Which city would you like the weather for?',
    })
    expect(respond([user('今日の天気は?'), model('?'), user('大阪は？')]).calls).toEqual([
      weather('Osaka'),
    ])
    expect(respond([user('weather in Tokyo'), model('.'), user('I love Paris')]).calls).toEqual([])
  })

  test.each(['現在地を教えて', '私の位置を教えて', 'where am I?', 'What is my current location?'])(
    '[ED8] calls get_location for %j',
    (request) => {
      expect(respond(request).calls).toEqual([location])
    },
  )

  test.each<[string, number]>([
    ['トラック2に変更して', 2],
    ['トラック１', 1],
    ['change the music to track 1', 1],
    ['play track two', 2],
    ['play the second song', 2],
    ['next track please', 2],
  ])('[ED9] changes the music for %j', (request, number) => {
    expect(respond(request).calls).toEqual([track(number)])
  })

  test('[ED9] “next” is the track after the current one, and “stop” needs a schema that allows it', () => {
    const playing = afterCalls('トラック2', [track(2)], [{ success: true, track: 2 }])
    expect(respond([...playing, model('.'), user('次の曲にして')]).calls).toEqual([track(1)])
    expect(respond('stop the music').calls).toEqual([])
    expect(respond([user('play music'), model('?'), user('2')]).calls).toEqual([track(2)])
    const stoppable = declare('change_bgm', { track: { type: 'INTEGER', minimum: 0 } }, ['track'])
    expect(respond('stop the music', { functions: [stoppable] }).calls).toEqual([track(0)])
  })

  test.each<[string, readonly Call[]]>([
    ['weather in Tokyo and send $5 to Bob', [weather('Tokyo'), pay(5, 'Bob')]],
    ['東京の天気を教えて、花子さんに50ドル送って', [weather('Tokyo'), pay(50, '花子')]],
    ['where am I, and change to track 2', [location, track(2)]],
  ])('[ED10] makes all calls of %j in parallel', (request, calls) => {
    expect(respond(request).calls).toEqual(calls)
  })

  test('[ED10] calls different tools in sequence if the request says so', () => {
    const request = 'Check the weather in Tokyo, then send $5 to Bob'
    expect(respond(request).calls).toEqual([weather('Tokyo')])
    const done = afterCalls(request, [weather('Tokyo')], [{ temperature: 18 }])
    expect(respond(done)).toMatchObject({ text: 'It is 18 °C in Tokyo.', calls: [pay(5, 'Bob')] })
  })
})

test('[ED11] does not call an undeclared function, and says so', () => {
  const functions = demoTools.filter(({ name }) => name === 'get_weather')
  const reply = respond('weather in Tokyo and send $5 to Bob', { functions })
  expect(reply.calls).toEqual([weather('Tokyo')])
  expect(reply.text).toContain('process_payment is not available')
  expect(respond('現在地を教えて', { functions: [] })).toMatchObject({ calls: [] })
  expect(respond('Send $5 to Bob', { callMode: 'NONE' }).calls).toEqual([])
})
