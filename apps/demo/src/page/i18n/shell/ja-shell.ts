import type { ShellLabels } from './shell-labels.ts'

export const jaShell: ShellLabels = {
  close: '閉じる',
  cancel: 'キャンセル',
  chats: {
    label: 'チャット一覧',
    show: 'チャット一覧を表示',
    hide: 'チャット一覧を隠す',
    search: 'チャットを検索',
    none: 'チャットはここに表示されます。',
    noneFound: '該当するチャットはありません。',
    today: '今日',
    earlier: '以前',
    running: '回答を作成中',
    pending: (count) => `承認待ち${count}件`,
    options: (title) => `「${title}」のメニュー`,
    rename: '名前を変更',
    newName: '新しい名前',
    delete: '削除',
    deleteTitle: 'このチャットを削除しますか？',
    deleteText: (title) => `「${title}」とすべてのメッセージが完全に削除されます。`,
    problems: {
      list: 'チャット一覧を読み込めませんでした。',
      rename: '名前を変更できませんでした。',
      delete: 'チャットを削除できませんでした。',
    },
    untitled: '無題のチャット',
  },
  mode: {
    label: 'モード',
    names: { sse: 'チャット', live: '音声', direct: 'Gemini（直接）' },
    connection: '接続方式',
    connections: { sse: 'ADK · SSE', live: 'ADK · Live', direct: 'Gemini（直接）' },
    explanations: {
      sse: 'エージェントと文字で会話します。回答は HTTP でストリーミングされます。',
      live: '同じエージェントと音声や文字で会話できます（WebSocket）。割り込みも可能です。',
      direct: 'エージェントを介さず、AI SDK だけで Gemini に接続します（比較用、保存されません）。',
    },
  },
  instance: {
    name: (name) => `インスタンス ${name}`,
    explanation: '最後に応答したサーバーインスタンス',
  },
  inspector: {
    title: 'インスペクター',
    show: 'インスペクターを表示',
    hide: 'インスペクターを隠す',
    messages: 'メッセージ（JSON）',
  },
  settings: {
    title: '設定',
    language: '言語',
    theme: 'テーマ',
    themes: { system: 'システム', light: 'ライト', dark: 'ダーク' },
    notifications: '通知',
    notificationsOff: 'オフ',
    notificationsOn: 'ページが非表示のとき',
    notificationsBlocked: 'ブラウザの設定で、このページの通知を許可してください。',
    music: '音楽',
    musicOff: 'オフ',
    shortcuts: 'キーボードショートカット',
    signIns: 'サインイン中のサービス',
    signedInAs: (service, account) => `${service}（${account}）`,
    signOut: (service) => `${service}からサインアウト`,
    signedOut: (service) => `${service}からサインアウトし、アクセス権を取り消しました。`,
    notRevoked: (service) =>
      `サインアウトしました。${service}でのアクセス権の取り消しは確認できませんでした。`,
    notSignedOut: 'サインアウトできませんでした。もう一度お試しください。',
  },
  shortcuts: {
    title: 'キーボードショートカット',
    names: {
      newChat: '新しいチャット',
      composer: 'メッセージを入力',
      chats: 'チャット一覧の表示・非表示',
      inbox: '承認待ちを表示',
      nextApproval: '次の承認待ちへ移動',
      inspector: 'インスペクターの表示・非表示',
      inspect: 'このメッセージやカードをインスペクターで表示',
      help: 'ショートカット一覧を表示',
      send: 'メッセージを送信',
      newLine: '改行',
      close: 'ダイアログやメニューを閉じる',
    },
  },
  composer: {
    attach: '画像を追加',
    pictures: '送信する画像',
    remove: (name) => `${name} を削除`,
    drop: 'ここに画像をドロップ',
    problems: {
      type: (name) => `${name} は PNG、JPEG、WebP、GIF の画像ではありません。`,
      size: (name, max) => `${name} は ${max} MB を超えています。小さい画像を選んでください。`,
      total: (name) =>
        `${name} を追加すると、一度に送れるサイズを超えます。次のメッセージで送信してください。`,
      count: (max) => `一度に送れる画像は${max}枚までです。`,
      unreadable: (name) => `${name} を読み込めませんでした。`,
    },
  },
  actions: {
    copy: 'コピー',
    copied: 'コピーしました',
    failed: 'コピーがブラウザに許可されませんでした',
    edit: '編集して再送信',
    editLabel: 'メッセージを編集',
    editHint: 'このメッセージ以降のやり取りが置き換えられます。',
    cancel: 'キャンセル',
    resend: '再送信',
  },
  voice: {
    needsLive: '音声で話す',
    captions: '字幕',
    microphone: 'マイク',
    waiting: '接続が切れています。再接続しています…',
    emulated: '内蔵エミュレーターは音声を認識しません。何を話しても、デモの会話を再生します。',
  },
  model: {
    label: 'モデル',
    emulated:
      'デモ用モデル：入力例に対する回答が用意されています。Gemini を使うには GOOGLE_API_KEY を設定してください。',
  },
  approver: {
    is: 'このブラウザは高額送金の二人目の承認者です。',
    how: '高額送金には二人目の承認者が必要です。試すには、別のブラウザかプライベートウィンドウで次のアドレスを開き、ターミナルに表示されたコードを入力してください：',
    title: '二人目の承認者',
    code: 'ターミナルに表示されたコード',
    enter: '二人目の承認者になる',
    wrong: 'サーバーの起動時に表示されたコードと一致しません。',
  },
  approvalsPage: {
    title: '承認',
    open: 'すべての承認と履歴',
    keys: 'J と K で移動、Enter で開き、Esc で閉じます。',
  },
  starts: {
    payment: {
      title: '送金を承認する',
      explanation: '承認を待ってから、一度だけ実行されます。',
      text: '花子さんに50ドル送金してください',
    },
    twoPeople: {
      title: '二人で承認する',
      explanation:
        '500ドルを超える送金は二人目が承認します。QRコードでスマートフォンからも承認できます。',
      text: '花子さんに600ドル送金してください',
    },
    talk: {
      title: '話しながら承認する',
      explanation: 'アシスタントと音声で会話しながら承認できます。',
    },
  },
  suggestions: [
    {
      title: 'ツール',
      suggestions: [
        { text: '東京の天気は？' },
        { text: '現在地を教えて' },
        { text: 'トラック2に変更して' },
      ],
    },
    {
      title: '承認',
      suggestions: [
        { text: 'Aliceに30ドル、Bobに40ドル送金してください' },
        { text: 'Aliceに20ドル送金してから、Bobに30ドル送金してください' },
        { text: '経理に、Aliceへ20ドル送金するように頼んで', modes: ['sse'] },
        { text: 'レストランの席を予約して', modes: ['sse', 'live'] },
        { text: '今日の予定を見せて', modes: ['sse', 'live'], needsSignIn: true },
      ],
    },
    {
      title: 'さまざまな回答',
      suggestions: [
        { text: '灯台の絵を描いて' },
        { text: 'この画像の大きさと色は？', needsPicture: true },
        { text: '順を追って考えて：9.9と9.11はどちらが大きい？' },
        { text: 'お茶の歴史を検索して' },
      ],
    },
    {
      title: '停止とエラー',
      suggestions: [
        { text: '途中で止められるように、長い物語を書いて' },
        { text: 'レート制限のエラーを見せて' },
      ],
    },
  ],
}
