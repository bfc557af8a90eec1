import type { NamedPayment, Phrases } from './phrases.ts'

const because = (reason: string | undefined): string =>
  reason === undefined ? '' : `理由：${endSentence(reason)}`
const endSentence = (text: string): string => (/[。.!?！？…]$/.test(text) ? text : `${text}。`)
/** Adds さん to names of people, not to addresses and companies. */
const withHonorific = (name: string): string =>
  /@|[社店]$|^my |^the /.test(name) ? name : `${name}さん`
const list = (items: readonly string[]): string => items.join('、')
const sentTo = ({ money, recipient }: NamedPayment): string =>
  `${withHonorific(recipient)}に${money}`

export const japanese: Phrases = {
  join: (sentences) => sentences.join(''),
  list,

  askRecipient: (money) => `承知しました。${money}をどなたに送金しますか？`,
  askAmount: (recipient) => `承知しました。${withHonorific(recipient)}にいくら送金しますか？`,
  askPayment: '承知しました。どなたに、いくら送金しますか？',
  askPlace: 'どの都市の天気をお調べしますか？',
  tripNeedsChat: '旅行の計画は、音声の会話ではなくチャットで承ります。',
  askTrack: 'トラック1とトラック2のどちらにしますか？',
  cannotStopMusic:
    'トラックの変更はできますが、音楽を止めることはできません。プレーヤーのボタンで止めてください。トラック1か2に変更しますか？',
  doesNotFit: (name, keys) =>
    `${name}は呼び出していません。${list(keys)}の値を受け付けないためです。`,
  needsArguments: (name, keys) =>
    keys.length === 0
      ? `${name}を呼び出すには「${name}()」と書いてください。`
      : `${name}を呼び出すには引数が必要です。例：${name} ${keys.map((key) => `${key}=…`).join(' ')}`,
  noTool: (name) =>
    `申し訳ありませんが、このチャットでは${name}が使えないため、お手伝いできません。`,

  needsApproval: (payments) => `${list(payments)}の承認をお願いします。`,
  payment: ({ money, recipient }) => `${withHonorific(recipient)}への${money}の送金`,
  weatherLookup: (place) => `${place}の天気の確認`,
  locating: '現在地の取得',
  asking: '質問',
  delegation: '経理への依頼',
  plan: '計画',
  planApproved: '計画が承認されました。',
  notebook: 'メモ帳への依頼',
  readingCalendar: 'カレンダーの確認',
  trackChange: (track) => `トラック${track}への変更`,
  otherCall: (name) => `${name}の呼び出し`,

  failed: (action, reason) => `${action}はできませんでした。${because(reason)}`,
  denied: (action, reason) =>
    reason === undefined
      ? `${action}は拒否されたため、実行していません。`
      : `${action}は拒否されたため、実行していません。理由は「${reason}」です。`,
  pending: (action) => `${action}はまだ実行されていません。承認を待っています。`,
  expired: (action) => `${action}は、承認の期限が切れたため実行していません。`,
  cancelled: (action, reason) => `${action}は取り消され、実行していません。${because(reason)}`,
  unknown: (action, reason) =>
    `${action}が実行されたかどうか分かりません。${because(reason)}もう一度試す前に確認してください。`,
  stillWaiting: (calls) => `${list(calls)}はまだ待っています。`,
  notGoingOn: 'そのため、次の手順には進んでいません。',

  sent: (payments) =>
    `${list(
      payments.map(
        (payment) =>
          `${sentTo(payment)}${payment.transaction === undefined ? '' : `（取引ID ${payment.transaction}）`}`,
      ),
    )}を送金しました。`,
  balance: (money) => `残高は${money}です。`,
  weather: ({ place, temperature, condition, humidity, feelsLike, wind }, spoken) => {
    const parts = [
      `気温${String(temperature)}℃`,
      ...(condition === undefined ? [] : [CONDITIONS.get(condition.toLowerCase()) ?? condition]),
      ...(humidity === undefined ? [] : [`湿度${String(humidity)}%`]),
      ...(spoken || feelsLike === undefined ? [] : [`体感${String(feelsLike)}℃`]),
      ...(spoken || wind === undefined ? [] : [`風速${String(wind)}m/s`]),
    ]
    return `${place}は${list(parts)}です。`
  },
  position: ({ latitude, longitude, accuracy }) => {
    const north = `${latitude < 0 ? '南緯' : '北緯'}${Math.abs(latitude).toFixed(4)}度`
    const east = `${longitude < 0 ? '西経' : '東経'}${Math.abs(longitude).toFixed(4)}度`
    const within = accuracy === undefined ? '' : `（誤差約${String(Math.round(accuracy))}m）`
    return `現在地は${north}、${east}です${within}。`
  },
  calendar: (owner, events) =>
    events.length === 0
      ? `今日の${withHonorific(owner)}の予定はありません。`
      : `今日の${withHonorific(owner)}の予定は、${list(events.map(({ time, title }) => `${time} ${title}`))}です。`,
  tableNoted: (guests, date, details) =>
    `${[`${date}、${String(guests)}名様`, ...details].join('、')}で承りました。このデモには予約先のレストランはありません。`,
  trackPlays: (track) => `BGMをトラック${track}に変更しました。`,
  answered: (name, rendering) =>
    rendering === '' ? `${name}の結果は空でした。` : `${name}の結果：${endSentence(rendering)}`,
  edited: (changes) =>
    changes.length === 0
      ? '内容は実行前に変更されました。'
      : `内容は実行前に変更されました（${changes.join('、')}）。`,
  note: (note) =>
    /^sample data\b/i.test(note) ? 'サンプルデータです。' : `補足：${endSentence(note)}`,

  greeting: (name) =>
    `こんにちは${name === undefined ? '' : `、${withHonorific(name)}`}！私は本物のモデルではなく、Geminiエミュレーターのデモです。ご用件は何でしょうか？`,
  leaveIt: '承知しました。何もしません。',
  thanks: 'どういたしまして！ほかにお手伝いできることはありますか？',
  goodbye: 'さようなら！またお話ししましょう。',
  identity:
    '私はGeminiエミュレーターのデモで、本物のモデルではありません。オフラインで決まった規則に従って答えるので、APIキーなしで試せます。',
  help: (spoken, tools) => {
    if (tools.length === 0) {
      return '私は本物のモデルではなくエミュレーターで、このチャットでは使えるツールがありません。マークダウンの例や絵を頼んでみてください。'
    }
    return spoken
      ? `私は本物のモデルではなくエミュレーターです。例えば、${tools
          .slice(0, 2)
          .map((text) => `「${text}」`)
          .join('や')}と話しかけてください。`
      : `私は本物のモデルではなくエミュレーターですが、次のことを試せます。\n\n${tools.map((text) => `- ${text}`).join('\n')}\n- マークダウンを見せて\n- 海の絵を描いて`
  },
  niceToMeet: (name) =>
    `はじめまして、${withHonorific(name)}！このチャットの間、お名前を覚えておきます。`,
  yourName: (name) =>
    name === undefined
      ? 'まだお名前を伺っていません。教えていただけますか？'
      : `お名前は${withHonorific(name)}です。`,
  knownBalance: (money) =>
    money === undefined
      ? '残高はまだ分かりません。送金すると分かります。'
      : `最後の送金の後の残高は${money}です。`,
  markdown: `## マークダウンの例

**太字**、*斜体*、\`コード\`が使えます。

1. 番号つきの箇条書き
2. 入れ子もできます
   - このように

| ツール | 実行場所 | 承認 |
| --- | --- | --- |
| \`get_weather\` | サーバー | 不要 |
| \`process_payment\` | サーバー | 必要 |

\`\`\`ts
const greet = (name: string): string => \`こんにちは、\${name}さん\`
\`\`\`

> 私はエミュレーターなので、この例はいつも同じです。
`,
  markdownSpoken:
    'マークダウンは読むためのものです。文字のチャットで頼んでいただければ、お見せします。',
  thought: (gist) =>
    `依頼は「${gist}」。合うツールがあるかを調べ、なければツールなしで言えることを考える。ツールは要らないので、順を追って答える。`,
  reasoned: (gist) =>
    `「${gist}」を順に考えます。まず、何を聞かれているかを読みます。次に、合うツールを探します。最後に、分かることを答えます。エミュレーターなので、これ以上の推論はできません。`,
  received: (files) =>
    `${list(files)}を受け取りました。エミュレーターなので、中身を見ることはできません。`,
  mostly: (colour) => `主に${colour}`,
  picture: (subject) => `${subject}を描きました。`,
  echo: (gist, example) =>
    `「${gist}」ですね。私は本物のモデルではなくエミュレーターなので、お答えできることは限られています。例えば「${example}」と頼んでみてください。`,
  nothingSaid:
    'お話しください。私は本物のモデルではなくエミュレーターです。「何ができますか」と聞いてみてください。',
  examples: [
    { tool: 'get_weather', text: '東京とロンドンの天気は？' },
    { tool: 'process_payment', text: 'Aliceに30ドル、Bobに40ドル送金してください' },
    { tool: 'get_location', text: '現在地を教えて' },
    { tool: 'change_bgm', text: 'トラック2に変更して' },
    { tool: 'get_calendar', text: '今日の予定を見せて' },
    { tool: 'notebook', text: '古いメモを削除して' },
    { tool: 'transfer_to_agent', text: '京都の週末旅行を計画して' },
    { tool: '', text: 'マークダウンを見せて' },
  ],
}

const CONDITIONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    clear: '快晴',
    sunny: '晴れ',
    'partly cloudy': '晴れ時々曇り',
    cloudy: '曇り',
    clouds: '曇り',
    overcast: '曇り',
    rain: '雨',
    rainy: '雨',
    drizzle: '小雨',
    thunderstorm: '雷雨',
    snow: '雪',
    snowy: '雪',
    fog: '霧',
    foggy: '霧',
    mist: '霧',
    windy: '強風',
  }),
)
