import { formatDuration } from './format-duration.ts'
import { toDuration } from './labels.ts'
import type { AdkLabels } from './labels.ts'

/** Writes an amount. Dollars are written as people say them. */
function money(amount: number, currency: string): string {
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 2 }
  if (currency === 'USD') return `${new Intl.NumberFormat('ja', digits).format(amount)}ドル`
  return new Intl.NumberFormat('ja', { style: 'currency', currency }).format(amount)
}

function decimal(value: number): string {
  return new Intl.NumberFormat('ja', { maximumFractionDigits: 20 }).format(value)
}

const SCRIPTS = {
  Cyrillic: 'キリル文字',
  Greek: 'ギリシャ文字',
  Armenian: 'アルメニア文字',
  Cherokee: 'チェロキー文字',
  Lisu: 'リス文字',
  Coptic: 'コプト文字',
  mathematical: '数学用の文字',
} as const

/** Why the server refused a decision or a message. */
const REFUSALS = {
  'bad-request': '送信した内容の形式が正しくありません。',
  'too-large': '送信した内容が大きすぎます。短くして、もう一度送信してください。',
  'store-failed': 'サーバーのデータベースに障害があります。管理者に連絡してください。',
}

/** The labels in Japanese. */
export const ja: AdkLabels = {
  locale: 'ja',
  message: {
    conversation: '会話',
    you: 'あなた',
    assistant: 'アシスタント',
    thinking: '考えています…',
    reasoning: '思考過程',
    sources: '出典',
    image: 'アシスタントが生成した画像',
    file: 'ファイル',
    audio: '音声',
    stopped: '停止しました',
    unsent: '送信されていません',
    incomplete: {
      length:
        '長さの上限に達したため、回答が途中で終わっています。「続けて」と送信すると続きが表示されます。',
      'content-filter': '内容に関する制限のため、モデルが回答を途中で終えました。',
      mistake: 'モデルの誤動作により、回答が途中で終わっています。もう一度お試しください。',
    },
    failed: (title) => `回答できませんでした。${title}。`,
    code: 'コード',
    codeResult: 'コードの実行結果',
    usage: (inputTokens, outputTokens) =>
      `入力 ${inputTokens} トークン、出力 ${outputTokens} トークン`,
    retry: 'もう一度試す',
  },
  content: {
    copy: 'コピー',
    copied: 'コピーしました',
    copyFailed: 'ブラウザーがコピーを許可しませんでした。',
    enlarge: '拡大',
    close: '閉じる',
    download: 'ダウンロード',
    loadPicture: (host) => `${host} から画像を読み込む`,
  },
  steps: {
    title: (agent) => `「${agent}」の手順`,
    iteration: (iteration, maxIterations) =>
      maxIterations === undefined
        ? `（${iteration} 回目）`
        : `（${iteration} 回目、最大 ${maxIterations} 回）`,
    pending: '未開始',
    running: '実行中',
    waiting: '回答待ち',
    done: '完了',
    stopped: '途中で停止',
  },
  tool: {
    arguments: '引数',
    result: '結果',
    details: '詳細',
    preparing: '準備中',
    running: '実行中',
    waiting: '承認待ち',
    done: '完了',
    failed: '失敗',
    denied: '拒否',
    describe: (toolName) => `${toolName} を実行`,
    names: { adk_request_input: '質問', mcp_elicitation: 'MCPサーバーからの質問' },
    functionName: '関数',
    waitingInside: '待機中',
    waitsFor: ({ kind, description, more }) => {
      const others = more === 0 ? '' : `（ほか${more}件）`
      switch (kind) {
        case 'approval':
          return `承認待ち：${description}${others}`
        case 'answer':
          return `回答待ち：${description}${others}`
        case 'sign-in':
          return `サインイン待ち：${description}${others}`
      }
    },
    emptyValue: '（空）',
    argumentNames: {},
  },
  notices: {
    title: '通知の記録',
    none: '通知は送られていません。',
    failed: '読み込めませんでした。閉じてからもう一度開いてください。',
    types: {
      'approval.requested': '承認の依頼',
      'approval.reminder': 'リマインダー',
      'approval.voted': '複数人のうち1人が承認',
      'approval.withdrawn': '承認の取り下げ',
      'approval.approved': '承認済み',
      'approval.denied': '拒否',
      'approval.expired': '期限切れ',
      'approval.cancelled': '取り消し',
      'approval.succeeded': '完了',
      'approval.failed': '失敗',
      'approval.unknown': '結果不明',
    },
    states: { waiting: '送信予定', sent: '送信済み', failed: '未達', ended: '未送信' },
    attempts: (count) => `${count}回試行`,
  },
  delegations: {
    title: '不在の間',
    given: (name) => `${name} があなたの代わりに判断します`,
    received: (name) => `${name} の代わりに判断できます`,
    until: '期限',
    end: '終了',
    endNamed: (name) => `代理を終了: ${name}`,
    person: '代わりに判断する人',
    nobody: '人を選択',
    time: '期間',
    days: (count) => `${count}日間`,
    give: '代理を頼む',
    failed: 'サーバーが受け付けませんでした。',
  },
  grants: {
    title: '確認なしで決まる操作',
    decided: 'あなたの事前の許可による（許可した時刻）',
    offer: ({ pinned, budget, maxUses, expiresMs, scope }) => {
      const like = pinned === '' ? '同じ種類の操作' : `同じ内容（${pinned}）の操作`
      const limits = [
        ...(budget ? [`${budget.argument}は合計${budget.max}まで`] : []),
        ...(maxUses === undefined ? [] : [`最大${maxUses}回`]),
        ...(expiresMs === undefined ? [] : [`今から${formatDuration(expiresMs, 'ja')}`]),
      ]
      const where = scope === 'chat' ? 'このチャットでは' : 'あなたのすべてのチャットで'
      const within = limits.length > 0 ? `（${limits.join('、')}）` : ''
      return `${where}、${like}を次から確認なしで許可する${within}`
    },
    offerDenial: 'このチャットでは、このツールの操作をすべて拒否する',
    used: ({ effect, uses, maxUses, spent, budget }) => {
      const count = maxUses === undefined ? `${uses}回` : `${maxUses}回中${uses}回`
      if (effect === 'deny') return `拒否中（これまで${count}）`
      return budget
        ? `${count}使用、${budget.argument}は${budget.max}のうち${spent}`
        : `${count}使用`
    },
    until: '期限',
    suspended: '停止中：外部の文章がチャットに入りました',
    revoke: '取り消す',
    revokeNamed: (title) => `取り消す：${title}`,
    revokeFailed:
      '取り消せませんでした。サーバーに接続できないか、受け付けられませんでした。もう一度お試しください。',
  },
  approval: {
    path: '呼び出し元：',
    severity: { low: '低リスク', medium: '中リスク', high: '高リスク' },
    waiting: '承認を待っています。',
    waitingForOthers: '承認済みです。ほかの人の承認を待っています。',
    running: '承認しました。実行しています…',
    denying: '拒否しました。アシスタントに伝えています…',
    held: (approved) =>
      approved
        ? '承認しました。残りもすべて判断されると、実行されます。'
        : '拒否しました。実行されません。残りもすべて判断されると、アシスタントに伝わります。',
    sending: '送信しています…',
    waitingForConnection: (approved) =>
      `接続が回復したら、${approved ? '承認' : '拒否'}を送信します。まだ実行されていません。`,
    waitingDecision: (given, mayHaveArrived) => {
      const what = { approval: '承認', denial: '拒否', answer: '回答' }[given]
      return mayHaveArrived
        ? `${what}の送信中に接続が切れました。接続が回復したらもう一度送信します。二重に処理されることはありません。`
        : `${what}は接続の回復を待っています。まだ送信されていません。`
    },
    cancelDecision: '取り消す',
    maybeSent: 'すでに送信された可能性があり、取り消せません。接続の回復をお待ちください。',
    failed: '承認しましたが、実行に失敗しました。',
    lookAlike: ({ word, letters }) =>
      `「${word}」には見分けにくい文字が含まれています：${letters.map(({ letter, script }) => `「${letter}」は${SCRIPTS[script]}`).join('、')}です。`,
    deceptive:
      '見落としやすい文字が含まれているため、印を付けて表示しています。確認してから承認してください。',
    quote: (text) => `「${text}」`,
    refused: '操作は受け付けられませんでした。',
    deadlinePassed: 'この端末の時計では、承認期限を過ぎています。',
    timeLeft: '承認期限までの残り時間',
    secondsLeft: (seconds) => (seconds >= 60 ? '残り1分です。' : `残り${seconds}秒です。`),
    approve: '承認',
    approveAction: (action) => `${action}を承認`,
    holdHint: '長押し、または2回押すと承認します。',
    pressAgain: 'もう一度押すと承認',
    pressedEarly: '少し待ってから、もう一度押してください',
    previewChanged: '表示後に内容が変わりました。確認してから承認してください。',
    previewMissing: '現在、実行した場合の結果を確認できません。拒否はできます。',
    retryPreview: 'もう一度確認',
    becomes: 'から',
    was: (value) => `変更前：${value}`,
    sum: ({ count, total, currency, available }) => {
      const sum = `承認待ち${count}件：合計${money(total, currency)}`
      return available === undefined ? sum : `${sum}（利用可能額${money(available, currency)}）`
    },
    understoodFrom: (words) => `判断のもとになった言葉：「${words}」`,
    decidedByReply: (approved) =>
      `メッセージにより${approved ? '承認' : '拒否'}しました。結果は上のカードに表示されます。`,
    decidedBy: ({ own, others: { length } }) => {
      if (own) return length === 0 ? 'あなた' : `あなたとほかの${length}人`
      return length === 1 ? 'ほかの人' : `ほかの${length}人`
    },
    unsent: '次の入力内容は送信されていません。',
    approveEdited: '変更して承認',
    approveCall: (description) => `承認：${description}`,
    editedCall: (title) => `変更後の${title}`,
    checkingEdit: '変更内容を確認しています…',
    changedFrom: (value) => `変更しました。依頼時の値：${value}`,
    deny: '拒否…',
    confirmDeny: '拒否する',
    edit: '編集…',
    back: '戻る',
    reason: '理由（任意）',
    describeLimits: ({ min, max }) => {
      if (min !== undefined && max !== undefined) return `${decimal(min)}〜${decimal(max)}`
      if (min !== undefined) return `${decimal(min)}以上`
      return max === undefined ? '' : `${decimal(max)}以下`
    },
    describeProblem: (problem) => {
      switch (problem.type) {
        case 'required':
          return '入力してください。'
        case 'number':
          return '数値を入力してください。'
        case 'integer':
          return '整数を入力してください。'
        case 'json':
          return 'JSON の形式が正しくありません。'
        case 'date':
          return '日付を入力してください。'
        case 'option':
          return '選択肢から選んでください。'
        case 'pattern':
          return '形式が正しくありません。'
        case 'min':
          return `${decimal(problem.limit)}以上を入力してください。`
        case 'max':
          return `${decimal(problem.limit)}以下を入力してください。`
        case 'above':
          return `${decimal(problem.limit)}より大きい数値を入力してください。`
        case 'below':
          return `${decimal(problem.limit)}より小さい数値を入力してください。`
        case 'alone':
          return `${decimal(problem.limit)}を超える場合は、ほかの人の承認も必要です。${decimal(problem.limit)}以下にするか、拒否して依頼し直してください。`
        case 'available':
          return `利用できるのは${decimal(problem.limit)}までです。`
        case 'step':
          return `${decimal(problem.limit)}の倍数を入力してください。`
        case 'minLength':
          return `${decimal(problem.limit)}文字以上で入力してください。`
        case 'maxLength':
          return `${decimal(problem.limit)}文字以内で入力してください。`
        case 'minItems':
          return `1行に1件ずつ、${decimal(problem.limit)}件以上入力してください。`
        case 'maxItems':
          return `1行に1件ずつ、${decimal(problem.limit)}件以内で入力してください。`
      }
    },
    optional: '（任意）',
    onePerLine: '1行に1件ずつ入力します。',
    argument: '項目',
    value: '値',
    requestedValue: '依頼内容',
    approvedValue: '承認内容',
    typedValue: '入力内容',
    votes: ({ given, voted }, needed) => {
      if (voted)
        return `あなたを含め、${needed}人のうち${given}人が承認しました。ほかの人の承認を待っています。`
      return given === 0
        ? `${needed}人の承認が必要です。`
        : `${needed}人のうち${given}人が承認しました。`
    },
    states: { denied: '拒否', expired: '期限切れ', cancelled: '取り消し', unknown: '不明' },
    outcomes: {
      approved: '承認しました。',
      denied: '拒否しました。実行されていません。',
      expired: '期限切れ：期限内に承認されませんでした。実行されていません。',
      cancelled: '取り消されました。実行されていません。',
      unknown: '不明：実行されたかどうか確認できません。やり直す前に確認してください。',
    },
    withReason: (outcome, reason) => `${outcome}理由：${reason}`,
    refusals: {
      unavailable: 'サーバーに接続できません。少し待ってからもう一度お試しください。',
      offline: 'オフラインのため送信していません。接続が戻ったら、もう一度送信してください。',
      unauthenticated:
        'サインアウトされました。別のタブでサインインしてから、ここでもう一度送信してください。',
      'unknown-approval': 'この承認依頼は見つかりません。',
      'not-allowed':
        'この内容では承認できません。決定の権限がないか、今後の操作まで許可することができません。許可を選ばずに、もう一度お試しください。',
      'approval-decided': 'この承認依頼は、すでに処理されています。',
      'other-principal':
        'この決定をした人とは別の人がサインインしています。受け付けられておらず、何も変更されていません。',
      'approval-voted': 'すでに承認しています。ほかの人の承認を待っています。',
      'approval-expired': '期限が過ぎたため、実行されませんでした。',
      'approval-cancelled': '取り消されたため、実行されませんでした。',
      'preview-failed':
        '現在、実行した場合の結果を確認できません。少し待ってからもう一度お試しください。',
      'not-editable':
        'この内容では、ほかの人の承認も必要です。内容を変えるか、拒否して依頼し直してください。',
      'preview-changed':
        '表示後に内容が変わりました。最新の内容を確認して、もう一度承認してください。',
      'call-blocked':
        '実行しても失敗するため、承認できません。内容を変更するか、拒否してください。',
      'no-payload': 'この依頼には追加の情報を付けられません。付けずに送信してください。',
      'invalid-answer': '回答の内容が正しくありません。修正して、もう一度送信してください。',
      'not-voted': 'まだ承認していないため、取り消せません。',
      'sign-in-needed': 'サインインが必要です。サインインするか、辞退してください。',
      'turn-running': '回答を作成中です。完了してから、もう一度送信してください。',
      'turn-lost':
        '別のサーバーが会話を引き継ぎました。ページを再読み込みして結果を確認してください。',
      ...REFUSALS,
      'too-fast': '送信の回数が多すぎます。少し待ってからもう一度お試しください。',
      'too-many-turns': '処理が混み合っています。少し待ってからもう一度お試しください。',
      overloaded: 'サーバーが混み合っています。少し待ってからもう一度お試しください。',
      internal: 'サーバーで問題が発生しました。もう一度お試しください。',
    },
  },
  question: {
    title: '質問',
    from: (server) => `「${server}」からの質問`,
    remote: {
      answer: (agent) => `リモートエージェント「${agent}」からの質問`,
      approval: (agent) => `リモートエージェント「${agent}」が承認を求めています`,
      signIn: (agent) => `リモートエージェント「${agent}」がサインインを求めています`,
    },
    yes: 'はい',
    no: 'いいえ',
    field: '回答',
    send: '回答を送信',
    decline: '回答しない',
    confirmDecline: '回答しないことを送信',
    proceed: '続ける',
    asksToOpen: '次のサイトのページを開くよう求められています。',
    openUrl: (host) => `${host} を新しいタブで開く`,
    waiting: '回答を待っています',
    states: {
      approved: '回答済み',
      denied: '回答しませんでした',
      expired: '期限までに回答がありませんでした。',
      cancelled: '質問は取り消されました。',
      unknown: '回答が届いたかどうかを確認できません。',
    },
  },
  signIn: {
    title: 'サインインが必要です',
    endedTitle: 'サインイン',
    asks: (service, toolName) =>
      `アシスタントは「${toolName}」のために ${service} のアカウントへのアクセスを求めています。`,
    scopes: 'アクセスの範囲：',
    start: (service) => `${service} にサインイン`,
    another: '別のアカウントを使う',
    opening: 'サインインを開いています…',
    opened: '別のウィンドウでサインインしてください。このページは自動的に続きます。',
    blocked: 'ブラウザーがウィンドウをブロックしました。ここから開いてください。',
    link: (service) => `${service} のサインインを開く`,
    apiKey: (service) => `${service} の API キー`,
    send: 'サインイン',
    decline: '辞退',
    failed: 'サインインを始められませんでした。もう一度お試しください。',
    unavailable:
      'このページからはサインインできません。アプリケーションでチャットを開いてください。',
    waiting: 'サインインを待っています',
    states: {
      approved: 'サインイン済み',
      denied: '辞退しました',
      expired: 'サインインされないまま期限が過ぎました。',
      cancelled: 'サインインは取り消されました。',
      unknown: '呼び出しが実行されたかどうかは不明です。',
    },
  },
  inbox: {
    label: (count, hasMore = false) => `承認待ち：${count}件${hasMore ? '以上' : ''}`,
    title: '承認待ち',
    empty: '承認待ちはありません。',
    open: 'チャットを開く',
    sending: '送信しています…',
    loadFailed: '一覧を更新できませんでした。表示が最新でない可能性があります。',
    loadMore: 'さらに表示',
    loadingMore: '読み込んでいます…',
    together: {
      open: (count, tool) => `${count}件をまとめて判断：${tool}`,
      approve: (count) => `${count}件を承認`,
      deny: (count) => `${count}件を拒否`,
    },
    due: '期限',
    context: {
      requestedBy: '依頼者',
      userText: '依頼の内容',
      votes: '承認した人',
      steps: '承認する人',
      you: 'あなた',
      byLink: (creator, name = 'アカウントのない人') => `${name}（${creator}のリンク）`,
      byDelegate: (delegate, person) => `${delegate}（${person}の代理）`,
      role: (role) => (role === 'approver' ? '承認者のどなたか' : `「${role}」の役割を持つ人`),
      step: ({ people, needed }) =>
        needed === 1 ? people.join('または') : `${people.join('、')}のうち${needed}人`,
      withStepState: (people, state) => `${people}（${state}）`,
      stepStates: { done: '済み', now: '承認待ち', later: '次の段階' },
      whyNot: {
        decided: 'すでに決定されています。',
        'later-step': '前の段階が終わると、承認または拒否できます。',
        'link-used':
          'あなたのリンクまたは代理での承認が、あなたの承認として数えられています。ほかの人の承認を待っています。',
        'earlier-step': 'あなたの段階は終わりました。ほかの人の承認を待っています。',
        'not-named': 'あなたは承認できません。ほかの人の承認を待っています。',
      },
    },
    withdraw: '承認を取り消す',
  },
  history: {
    title: '承認の履歴',
    empty: '該当する承認はありません。',
    loading: '読み込み中…',
    filters: '承認の絞り込み',
    state: '状態',
    tool: 'ツール',
    any: 'すべて',
    deniedBy: '拒否した人',
    reason: '理由',
    states: {
      all: 'すべて',
      decided: '決定済み',
      requested: '承認待ち',
      approved: '承認済み',
      executing: '実行中',
      succeeded: '完了',
      failed: '失敗',
      denied: '拒否',
      expired: '期限切れ',
      cancelled: '取り消し',
      unknown: '不明',
    },
  },
  share: {
    open: 'ほかの人に頼む…',
    explanation:
      'このコードを読み取るか、リンクを開いてもらってください。リンクで決定できるのは一度だけです。開いた人が決定できるので、頼みたい人だけに渡してください。',
    qrCode: '下のリンクのQRコード',
    thisMachineOnly:
      'このアドレスはこのマシンでしか開けないため、QRコードはありません。このマシンの別のブラウザーでリンクを開いてください。',
    link: 'この承認へのリンク',
    copy: 'コピー',
    copied: 'コピーしました',
    validUntil: '有効期限',
    failed: 'リンクを作成できませんでした。',
    closed: '操作の承認または拒否を依頼されています。',
    show: '依頼を表示',
    from: '承認の依頼者',
    invalid:
      'このリンクは使用済みか、別のブラウザーで開かれたか、期限切れか、無効です。もう一度開くか、新しいリンクをもらってください。',
    thanks: (state) => `決定を記録しました（${state}）。このページは閉じてかまいません。`,
  },
  attention: {
    title: '承認が必要です',
    needed: ({ action, severity, minutes }) => {
      const { count, unit } = toDuration(minutes)
      const time = `期限は${count}${{ minute: '分', hour: '時間', day: '日' }[unit]}`
      const details = [action, severity, minutes > 0 && time].filter(Boolean)
      return `承認が必要です：${details.join('、')}。`
    },
  },
  composer: {
    message: 'メッセージ',
    send: '送信',
    stop: '停止',
    enterSends: 'Enter で送信、Shift+Enter で改行',
    enterQueues: 'Enter を押すと、回答が終わってから送信します',
    enterInterrupts: 'Enter で回答を中断して送信',
    queue: '送信待ちのメッセージ',
    queued: '回答が終わると送信されます。',
    unqueueKey: 'Esc で入力欄に戻せます。',
    queueWaits: '回答に失敗したため、まだ送信していません。',
    unqueue: '入力欄に戻す',
  },
  problem: {
    rateLimited: 'モデルが混み合っています',
    rateLimitedText: (seconds) =>
      seconds === undefined
        ? 'リクエストが多すぎます。少し待ってからもう一度お試しください。'
        : `リクエストが多すぎます。${seconds}秒後にもう一度お試しください。`,
    disconnected: {
      title: '接続が切れました',
      text: 'ネットワークを確認してください。再接続すると回答の続きが表示されます。',
    },
    unsent: {
      title: 'メッセージを送信できませんでした',
      text: 'ネットワークを確認してください。再接続すると送信されます。',
    },
    busy: {
      title: '回答を作成中です',
      text: '完了するまで待ってから、もう一度お試しください。',
    },
    overloaded: {
      title: 'モデルが過負荷になっています',
      text: '現在、利用が集中しています。少し待ってからもう一度お試しください。',
    },
    mistake: {
      title: 'モデルが正しく回答できませんでした',
      text: 'もう一度試すか、表現を変えて送信してください。',
    },
    noAccess: {
      title: 'サーバーがモデルを利用できません',
      text: '再試行しても解決しません。サーバーの管理者が API キーとモデル名を確認する必要があります。',
    },
    blocked: {
      title: 'モデルが回答を控えました',
      text: '質問の表現を変えて、もう一度送信してください。',
    },
    unavailable: {
      title: '問題が発生しました',
      text: '回答を完了できませんでした。少し待ってからもう一度お試しください。',
    },
    unfinished: {
      title: '回答が途中で終わりました',
      text: '実行済みの操作はそのまま残り、再実行されません。続けるには、メッセージを送信してください。',
    },
    signedOut: {
      title: 'サインアウトされました',
      text: '別のタブでサインインしてから、ここでもう一度お試しください。このページを再読み込みすると、未送信のメッセージは失われます。',
    },
    refused: 'メッセージを受け付けられませんでした',
    refusals: {
      'already-acted':
        'このメッセージのあとに、承認された操作が実行されたか、まもなく実行されます。新しいメッセージを送信してください。',
      'newer-messages':
        '別のページで書かれた新しいメッセージがあるため、何も置き換えていません。内容を確認し、それでも変更する場合は、もう一度操作してください。',
      'reply-outdated':
        'この返答が対象とする確認は、すでに終わっているか、そのあとに別の確認が追加されました。メッセージは送信されていません。チャットを確認して、もう一度お答えください。',
      ...REFUSALS,
      'too-many-live-chats':
        '開いている音声の会話が多すぎます。ほかのページを閉じて、1分ほど待ってからもう一度お試しください。',
      'too-many-sockets': '開いている接続が多すぎます。ほかのページを閉じてください。',
      'model-refused':
        'モデルがリクエストを受け付けませんでした。内容を変えるか、新しいチャットを始めてください。',
      'not-rewindable': 'このチャットは、以前のメッセージからやり直せません。',
      'other-agent': 'このチャットは別のエージェントのものです。新しいチャットを始めてください。',
      'unknown-agent':
        'このチャットのエージェントは現在利用できません。チャットを読むことはできます。続けるには、新しいチャットを始めてください。',
      'not-allowed': 'この操作を行う権限がありません。',
      'other-principal':
        'このメッセージを書いた人とは別の人がサインインしています。メッセージは送信されていません。',
      'not-live': 'このサーバーは音声の会話に対応していません。',
    },
    retry: 'もう一度試す',
    reconnect: '再接続',
    reload: 'ページを再読み込み',
    dismiss: '閉じる',
  },
  connection: {
    idle: '未接続',
    connecting: '接続しています…',
    open: '接続済み',
    lost: '接続が切れました。再接続しています…',
    closed: '切断されました',
  },
  connectionNotice: {
    offline: 'オフラインです',
    signInAgain: '別のタブでサインインしてから、このページに戻ってください。',
    kept: {
      message: '接続が回復したら、メッセージを送信します。',
      reply: '接続が回復したら、回答を表示します。',
      decision: '接続が回復したら、承認・拒否・回答を送信します。',
      nothing: '入力した内容は保持されます。',
    },
    nextAttempt: (seconds) => `${seconds}秒後に再接続します`,
    tryNow: '今すぐ再接続',
    refused: {
      approval: '承認は反映されませんでした',
      denial: '拒否は反映されませんでした',
      answer: '回答は反映されませんでした',
    },
    dismiss: '閉じる',
  },
  voice: {
    hold: '押しながら話す',
    handsFree: 'ハンズフリーで話す',
    end: '会話を終了',
    endShort: '終了',
    states: {
      off: '押すと話せます。',
      asking: 'ブラウザーでマイクの使用を許可してください…',
      listening: '聞いています…',
      'person-speaking': '音声を認識しています…',
      'model-speaking': 'アシスタントが話しています…',
    },
    stageStates: {
      connecting: '接続しています…',
      thinking: '考えています…',
      muted: 'マイクはミュート中です。',
      approval: 'あなたの承認を待っています',
      answer: 'あなたの回答を待っています',
    },
    stage: '音声',
    mute: 'マイクをミュート',
    unmute: 'ミュートを解除',
    interrupt: 'アシスタントの発話を止める',
    pinned: (count) => (count === 1 ? '承認待ち' : `承認待ち ${count}件中1件目`),
    showCard: 'カードを表示',
    level: '音量',
    problems: {
      'permission-denied':
        'マイクがブロックされています。ブラウザーの設定でこのページのマイクを許可してから、もう一度お試しください。',
      'no-microphone': 'マイクが見つかりません。接続してから、もう一度お試しください。',
      'in-use': 'ほかのアプリがマイクを使用しています。終了してから、もう一度お試しください。',
      'insecure-page': '音声を使うには安全な接続が必要です。https で開いてください。',
      unsupported: 'このブラウザーは録音に対応していません。最新のブラウザーをお試しください。',
      'taken-over':
        'このチャットの音声は、別のタブまたは別の端末で開始されました。ここで使うには、もう一度開始してください。',
      'lost-microphone': 'マイクの接続が切れました。接続し直してから、もう一度開始してください。',
      'lost-connection': '接続が切れました。もう一度開始してください。',
    },
  },
}
