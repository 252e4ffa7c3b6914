import type { PayPageState } from '../../domain/pay-page';

/** Languages of the payer's page; the first is spoken when the browser asks for none of them. */
export const LANGUAGES = ['en', 'zh'] as const;
export type Language = (typeof LANGUAGES)[number];

/** For `lang` attributes and for numbers and dates. */
export const LOCALES: Record<Language, string> = { en: 'en', zh: 'zh-CN' };

interface PayWords {
  title: string;
  payTo(merchant: string): string;
  order: string;
  amount: string;
  choose: string;
  pay(amount: string): string;
  payAnother: string;
  timeLeft: string;
  continueAt(channel: string): string;
  scan: string;
  qrLabel: string;
  openHere: string;
  notPaidYet: string;
  back: string;
  otherLanguage: string;
  heading: Record<PayPageState, string>;
  text: Record<Exclude<PayPageState, 'closed'>, string>;
  /** Of an order that closes though nothing was tried. */
  ending: string;
  /** By why it was closed; any other reason: a decision. */
  closed: Record<'expired' | 'cancelled' | 'decided', string>;
  moneyBack: string;
  /** What the page's script says by itself. */
  script: {
    sending: string;
    otherTab: string;
    unreachable: string;
    switching: string;
    refused: string;
    stillNothing: string;
  };
  goingOn: string;
  linkUnknown: { heading: string; text: string };
  linkOver: { heading: string; text: string };
  problem: { heading: string; text: string };
  noChannel: string;
}

/** The other language's own name, to switch to it. */
export const WORDS: Record<Language, PayWords> = {
  en: {
    title: 'Payment',
    payTo: (merchant) => `Pay ${merchant}`,
    order: 'Order',
    amount: 'Amount',
    choose: 'How would you like to pay?',
    pay: (amount) => `Pay ${amount}`,
    payAnother: 'Pay another way',
    timeLeft: 'Time left to pay:',
    continueAt: (channel) => `Continue at ${channel}`,
    scan: 'Scan this code with your payment app.',
    qrLabel: 'QR code to pay with',
    openHere: 'Open the payment on this device',
    notPaidYet: 'If you have paid already, there is nothing to do: this page follows by itself.',
    back: 'Back to the shop',
    otherLanguage: '中文',
    heading: {
      choosing: 'Choose how to pay',
      again: 'The payment was not made',
      going: 'Waiting for your payment',
      waiting: 'Waiting for confirmation',
      paid: 'Paid',
      refunded: 'Paid and refunded',
      closed: 'This order is closed',
      review: 'Your payment is being checked',
    },
    text: {
      choosing: 'You pay once, however often you press.',
      again: 'No money was taken. You can try again.',
      going: 'Finish the payment where you were sent.',
      waiting: 'Please do not pay again. We are asking the payment service what became of it.',
      paid: 'Thank you. The payment has arrived.',
      refunded: 'The payment has been given back in full.',
      review:
        'Something about it has to be looked at by a person. Please do not pay again: nothing is lost.',
    },
    ending: 'This order takes no payment any more. It is being closed.',
    closed: {
      expired: 'The time to pay is over: this link takes no payment any more.',
      cancelled: 'It was cancelled and takes no payment any more.',
      decided: 'It takes no payment any more.',
    },
    moneyBack: 'Money that still arrives goes back to you.',
    script: {
      sending: 'Sending your payment…',
      otherTab: 'The payment is already being sent in another tab.',
      unreachable:
        'No answer yet. We ask again by itself, under the same number: you cannot pay twice.',
      switching: 'Closing the other way to pay first…',
      refused: 'This way to pay is not open now. Please choose another one.',
      stillNothing: 'Still no answer. You can press again: it stays the same payment.',
    },
    goingOn: 'You are being taken to the payment page.',
    linkUnknown: {
      heading: 'This payment link is not known',
      text: 'Please check the address, or ask the shop for a new link.',
    },
    linkOver: {
      heading: 'This payment link has expired',
      text: 'The order has ended. Please ask the shop about it.',
    },
    problem: {
      heading: 'We cannot tell at the moment',
      text: 'Please do not pay another way. Reload this page in a moment: you cannot pay twice.',
    },
    noChannel: 'No way to pay is available at the moment. Please try again later.',
  },
  zh: {
    title: '付款',
    payTo: (merchant) => `向 ${merchant} 付款`,
    order: '订单',
    amount: '金额',
    choose: '请选择付款方式',
    pay: (amount) => `支付 ${amount}`,
    payAnother: '换一种方式付款',
    timeLeft: '剩余付款时间：',
    continueAt: (channel) => `前往 ${channel} 继续付款`,
    scan: '请用付款应用扫描此二维码。',
    qrLabel: '付款二维码',
    openHere: '在本设备上打开付款页面',
    notPaidYet: '如果您已付款，无需任何操作：本页面会自动更新。',
    back: '返回商店',
    otherLanguage: 'English',
    heading: {
      choosing: '选择付款方式',
      again: '付款未完成',
      going: '等待您付款',
      waiting: '正在等待确认',
      paid: '已付款',
      refunded: '已付款，已退款',
      closed: '订单已关闭',
      review: '付款正在核实',
    },
    text: {
      choosing: '无论点击多少次，都只会付款一次。',
      again: '没有扣款。您可以重试。',
      going: '请在打开的付款页面完成付款。',
      waiting: '请不要再次付款。我们正在向付款服务查询结果。',
      paid: '谢谢，款项已收到。',
      refunded: '款项已全额退还。',
      review: '需要人工核实。请不要再次付款：您的款项不会丢失。',
    },
    ending: '此订单不再接受付款，正在关闭。',
    closed: {
      expired: '付款时间已过，此链接不再接受付款。',
      cancelled: '订单已取消，不再接受付款。',
      decided: '订单不再接受付款。',
    },
    moneyBack: '之后到账的款项将退还给您。',
    script: {
      sending: '正在提交付款…',
      otherTab: '付款正在另一个标签页中提交。',
      unreachable: '尚无回复。我们会用同一编号自动再次查询：您不会重复付款。',
      switching: '正在关闭另一种付款方式…',
      refused: '此付款方式暂不可用，请选择其他方式。',
      stillNothing: '仍无回复。您可以再次点击：仍是同一笔付款。',
    },
    goingOn: '正在前往付款页面。',
    linkUnknown: { heading: '付款链接无效', text: '请检查地址，或向商店索取新的链接。' },
    linkOver: { heading: '付款链接已过期', text: '订单已结束，请联系商店。' },
    problem: {
      heading: '暂时无法确认',
      text: '请不要用其他方式付款。请稍后重新加载此页面：您不会重复付款。',
    },
    noChannel: '目前没有可用的付款方式，请稍后再试。',
  },
};

/** The language asked for by `?lang=`, else the first of the browser's that we speak. */
export function languageOf(wanted: string | undefined, accept: string | undefined): Language {
  const known = (tag: string | undefined): Language | undefined =>
    LANGUAGES.find((language) => tag?.trim().toLowerCase().split(/[-_]/)[0] === language);
  const asked = known(wanted);
  if (asked) return asked;
  const byWeight = (accept ?? '')
    .split(',')
    .slice(0, 20)
    .map((part) => {
      const [tag, ...parameters] = part.split(';');
      const q = parameters.find((parameter) => parameter.trim().startsWith('q='));
      return { tag, weight: q === undefined ? 1 : Number(q.trim().slice(2)) || 0 };
    })
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight);
  return byWeight.map(({ tag }) => known(tag)).find((language) => language) ?? LANGUAGES[0];
}
